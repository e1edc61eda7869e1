#include "tier/tier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "platforms/error.hpp"
#include "tier/live/parts.hpp"

namespace slacktier {

Tier::~Tier() {
  // Sources first: their threads call back into the layers and ring the worker.
  for (auto& source : sources_) source->pages.reset();
  stop_.store(true, std::memory_order_release);
  doorbell_.ring();
  if (worker_) worker_->join();
}

void Tier::launch_hash(Stream& main, const Buffer& context, const Buffer& rows, std::uint32_t tokens) {
  HashArgs args;
  args.hash = hash_.get();
  args.parameters = hash_parameters_ ? static_cast<const std::byte*>(hash_parameters_->device()) : nullptr;
  args.context = static_cast<const std::uint32_t*>(context.device());
  args.rows = static_cast<std::uint32_t*>(rows.device());
  args.tokens = tokens;
  args.layers = static_cast<std::uint32_t>(layers_.size());
  args.rows_per_token = spec_.rows_per_token();
  main.launch(hash_kernel_, args);
}

void Tier::enqueue_begin(Stream& main) {
  auto* stamps = static_cast<std::int64_t*>(stamps_->host());
  main.timestamp(&stamps[0]);
  launch_hash(main, *tokens_, *rows_device_, options_.max_tokens);
  main.record(*hashed_);
  side_->wait(*hashed_);
  side_->copy(rows_host_->host(), rows_device_->device(),
              rows_host_->bytes() < rows_device_->bytes() ? rows_host_->bytes() : rows_device_->bytes());
  side_->post(*post_);
  side_->record(*posted_);
  waits_for_post_ = true;
}

// What is the same in all of a layer's gathers.
GatherArgs Tier::gather_args(const Layer& layer) const {
  GatherArgs args;
  args.pool = pool_ ? static_cast<const std::byte*>(pool_->device_base()) : nullptr;
  args.table = layer.setup.table ? layer.setup.table->device_data() : nullptr;
  args.cache = layer.cache;
  args.row_values = spec_.row_values;
  args.row_bytes = spec_.row_bytes;
  args.page_bytes = options_.geometry.page_bytes;
  args.format = spec_.format;
  args.output = options_.output;
  return args;
}

void Tier::enqueue_layer(Stream& main, std::size_t layer_index) {
  Layer& layer = *layers_[layer_index];
  // Every gate depends on the post by a graph edge; one wait before the first gate covers all.
  if (waits_for_post_) main.wait(*posted_);
  waits_for_post_ = false;
  main.timestamp(layer.gate_before);
  if (layer.setup.read == ReadMode::on_demand) main.host_function(&Tier::ask, &layer);
  main.await(*layer.signal);
  main.timestamp(layer.gate_after);
  GatherArgs args = gather_args(layer);
  args.descriptors = static_cast<const Descriptor*>(layer.descriptors->device());
  args.out = layer.out->device();
  args.lookups = static_cast<std::uint32_t>(options_.max_tokens * spec_.rows_per_token());
  main.launch("tier.gather", args);
  main.reset(*layer.signal);
}

void Tier::enqueue_end(Stream& main) { main.timestamp(static_cast<std::int64_t*>(stamps_->host()) + 1); }

void Tier::begin_step(std::span<const std::uint32_t> context, std::span<const std::uint8_t> active) {
  if (control_file_) look_at_control();
  // First of all: a worker that is to look for the indices wakes up while the step is prepared and launched.
  post_->clear();
  begun_epoch_.store(++epoch_, std::memory_order_release);
  if (options_.poll_indices > 0) doorbell_.ring();
  std::memcpy(context_, context.data(), context.size_bytes());
  std::memcpy(active_, active.data(), active.size_bytes());
  for (auto& layer : layers_) {
    if (!layer->signal->arm(epoch_))
      throw DeviceError(fmt::format("layer {}: its gate is still open from the step before: that step's reset has not run",
                                    spec_.layers[layer->index].layer));
    layer->status = StepStatus::ok;
    layer->fault.clear();
    layer->submitted = layer->arrived = 0;
  }
  prepared_epoch_.store(epoch_, std::memory_order_release);
}

void Tier::run_worker() {
  std::uint32_t seen = 0;
  for (;;) {
    seen = doorbell_.wait(seen, time_to_look());
    if (stop_.load(std::memory_order_acquire)) return;
    if (indices_are_in()) plan_step();
    start_asked();
    const Nanos now = monotonic_clock().now();
    give_up_unposted(now);
    give_up_late(now);
    if (settle_arrived() && settled_epoch_.load(std::memory_order_relaxed) != planned_epoch_) {
      settled_epoch_.store(planned_epoch_, std::memory_order_release);
      settled_.ring();
    }
  }
}

// How long the worker may sleep when nobody rings. Never for long: where the device's post rings, nobody says that a step
// has begun, and one whose post never comes is to be given up, too.
Nanos Tier::time_to_look() const {
  const Nanos now = monotonic_clock().now();
  Nanos wait = 1'000'000'000;
  const auto at_most = [&](Nanos limit) { wait = std::min(wait, std::max<Nanos>(0, limit)); };
  for (const auto& layer : layers_)
    if (layer->phase.load(std::memory_order_acquire) == Layer::Phase::reading) at_most(layer->deadline - now);
  if (expected_epoch_ != planned_epoch_) {
    at_most(expected_since_ + options_.watchdog - now);
    // A post that nobody rings for is seen late by at most a sixteenth of the time it took.
    if (options_.poll_indices > 0) at_most(std::max<Nanos>(20'000, (now - expected_since_) / 16));
  }
  return wait;
}

// True once a step: when it was begun and its indices are in host memory.
bool Tier::indices_are_in() {
  const std::uint64_t begun = begun_epoch_.load(std::memory_order_acquire);
  if (begun == planned_epoch_) return false;
  bool in = post_->posted();
  if (!in && expected_epoch_ != begun) {
    expected_epoch_ = begun;
    expected_since_ = monotonic_clock().now();
    if (options_.poll_indices > 0) in = post_->poll(options_.poll_indices, stop_);
  }
  if (in) planned_epoch_ = expected_epoch_ = begun;
  return in;
}

void Tier::plan_step() {
  seen_indices_ = monotonic_clock().now();
  const auto* rows = static_cast<const std::uint32_t*>(rows_host_->host());
  const std::size_t lookups = std::size_t{options_.max_tokens} * spec_.rows_per_token();
  for (auto& layer : layers_) {
    layer->resolve_begin = monotonic_clock().now();
    {
      const std::lock_guard lock(layer->transitions);
      layer->plan(planned_epoch_, {rows + layer->index * lookups, lookups}, {active_, options_.max_tokens});
    }
    layer->resolve_end = monotonic_clock().now();
    if (layer->setup.read == ReadMode::on_demand && layer->core->in_flight()) {
      layer->phase.store(Layer::Phase::planned, std::memory_order_release);
      continue;
    }
    layer->phase.store(Layer::Phase::reading, std::memory_order_release);
    layer->deadline = layer->resolve_end + options_.watchdog;
    // Layer 1's pages are on their way before layer 14 is planned.
    if (options_.first_layer_first) start_reads(*layer);
  }
  if (!options_.first_layer_first)
    for (auto& layer : layers_)
      if (layer->phase.load(std::memory_order_relaxed) == Layer::Phase::reading) start_reads(*layer);
}

void Tier::start_reads(Layer& layer) {
  if (!layer.core->in_flight()) {
    layer.arrived = monotonic_clock().now();
    layer.status = layer.core->counts().failed > 0 ? StepStatus::no_buffers : StepStatus::ok;
    layer.signal->publish(planned_epoch_, layer.status);
    layer.phase.store(Layer::Phase::arrived, std::memory_order_release);
    return;
  }
  Batch* batch = nullptr;
  for (auto& candidate : layer.batches)
    if (!candidate->busy.load(std::memory_order_acquire)) batch = candidate.get();
  if (!batch) {
    // Two steps given up and their reads still out there: this one is given up at once.
    layer.deadline = 0;
    layer.current = nullptr;
    return;
  }
  batch->busy.store(true, std::memory_order_relaxed);
  layer.current = batch;
  const auto reads = layer.core->reads();
  batch->read.reads = reads;
  batch->read.faults = std::span(batch->faults).first(reads.size());
  batch->read.errors = std::span(batch->errors).first(reads.size());
  batch->read.epoch = planned_epoch_;
  batch->read.segment = layer.segment;
  layer.source->pages->submit(batch->read);
}

// The first failed page of a batch: layer, page, disk, what was wrong.
std::string Tier::describe_fault(const Layer& layer, const Batch& batch) const {
  std::size_t bad = 0;
  while (batch.read.faults[bad] == PageFault::none) ++bad;
  const std::uint64_t page = batch.read.reads[bad].page;
  const auto& disks = layer.source->image.paths;
  if (const std::string failure = batch.errors[bad] ? layer.source->pages->failure() : ""; !failure.empty())
    return fmt::format("layer {}: page {}: {}", spec_.layers[layer.index].layer, page, failure);
  return fmt::format("layer {}: page {} on {}: {}", spec_.layers[layer.index].layer, page, disks[page % disks.size()],
                     batch.errors[bad] ? std::strerror(batch.errors[bad]) : to_string(batch.read.faults[bad]));
}

// On a thread of the source: the gate opens from here, without a detour over the worker.
void Tier::pages_done(Layer& layer, Batch& batch) {
  const std::uint64_t epoch = batch.read.epoch;
  if (epoch & wave_bit) return wave_done(layer, batch);
  {
    const std::lock_guard lock(layer.transitions);
    const LayerCore::Release release = layer.pages_in(epoch, batch.read.faults);
    if (release.publish) {
      layer.status = release.status;
      layer.submitted = batch.read.submitted.load(std::memory_order_relaxed);
      layer.arrived = batch.read.completed;
      if (release.status == StepStatus::read_error) layer.fault = describe_fault(layer, batch);
      layer.signal->publish(epoch, release.status);
      layer.phase.store(Layer::Phase::arrived, std::memory_order_release);
    }
  }
  batch.busy.store(false, std::memory_order_release);
  doorbell_.ring();
}

// True when no layer waits for pages any more.
bool Tier::settle_arrived() {
  bool all = true;
  for (auto& layer : layers_) {
    if (layer->phase.load(std::memory_order_acquire) == Layer::Phase::arrived) {
      const std::lock_guard lock(layer->transitions);
      layer->settle();
      layer->phase.store(Layer::Phase::settled, std::memory_order_release);
    }
    all = all && layer->phase.load(std::memory_order_acquire) == Layer::Phase::settled;
  }
  return all;
}

const StepReport& Tier::finish_step() {
  std::uint32_t seen = settled_.count();
  while (settled_epoch_.load(std::memory_order_acquire) != epoch_) seen = settled_.wait(seen);
  const auto* stamps = static_cast<const std::int64_t*>(stamps_->host());
  // The worker and the sources read the host's clock; the gates' stamps stay on the device's.
  const Nanos begin = device_.host_time(stamps[0]);
  report_.epoch = epoch_;
  report_.step = stamps[1] - stamps[0];
  report_.indices = seen_indices_ - begin;
  report_.control_generation = control_generation_;
  for (auto& layer : layers_) {
    LayerReport& out = report_.layers[layer->index];
    out.counts = layer->core->counts();
    out.status = layer->status;
    out.resolve_begin = layer->resolve_begin - begin;
    out.resolve_end = layer->resolve_end - begin;
    out.submitted = layer->submitted ? layer->submitted - begin : -1;
    out.arrived = layer->arrived ? layer->arrived - begin : -1;
    out.opened = *layer->gate_after - stamps[0];
    out.stall = *layer->gate_after - *layer->gate_before;
    out.fault = layer->fault;
  }
  return report_;
}

void Tier::advance(std::span<const std::uint32_t> context) {
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  const std::size_t columns = spec_.rows_per_token();
  const std::size_t tokens = context.size() / order;
  for (std::size_t begin = 0; begin < tokens; begin += options_.max_tokens) {
    const std::size_t n = std::min<std::size_t>(options_.max_tokens, tokens - begin);
    advance_rows_.resize(n * columns);
    for (auto& layer : layers_) {
      if (layer->core->resident()) continue;
      hash_->rows(layer->index, context.data() + begin * order, n, advance_rows_.data());
      advance_filled_.clear();
      {
        const std::lock_guard lock(layer->transitions);
        layer->advance(advance_rows_, advance_filled_);
      }
      for (const std::uint32_t slot : advance_filled_) layer->advanced[slot / 64] |= std::uint64_t{1} << (slot % 64);
    }
  }
}

void Tier::fill_advanced() {
  for (auto& layer : layers_) fill_slots(*layer);
}

void Tier::fill_slots(Layer& layer) {
  if (layer.advanced.empty()) return;
  auto* records = static_cast<std::byte*>(filling_->host());
  auto* slots = reinterpret_cast<std::uint32_t*>(records + filling_batch * spec_.row_bytes);
  std::uint32_t count = 0;
  for (std::size_t word = 0; word < layer.advanced.size(); ++word)
    for (std::uint64_t& bits = layer.advanced[word]; bits != 0; bits &= bits - 1) {
      const auto slot = static_cast<std::uint32_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
      const std::uint32_t row = layer.core->directory()->row_of(slot);
      if (row == UINT32_MAX) continue;
      layer.origin->row(options_.folds[layer.index].row(row, options_.geometry),
                        records + std::size_t{count} * spec_.row_bytes);
      slots[count] = slot;
      if (++count < filling_batch) continue;
      store_records(layer, count);
      count = 0;
    }
  store_records(layer, count);
}

void Tier::store_records(Layer& layer, std::uint32_t count) {
  if (count == 0) return;
  StoreArgs args;
  args.records = static_cast<const std::byte*>(filling_->device());
  args.slots = reinterpret_cast<const std::uint32_t*>(args.records + filling_batch * spec_.row_bytes);
  args.cache = layer.cache;
  args.count = count;
  args.row_bytes = spec_.row_bytes;
  side_->launch("tier.store", args);
  side_->synchronize();
}

// Gathered rows where the host can read them.
const void* Tier::rows_on_host(const Buffer& out, std::size_t bytes) const {
  if (out.host() != nullptr) return out.host();
  side_->copy(fetched_->host(), out.device(), bytes);
  side_->synchronize();
  return fetched_->host();
}

void Tier::resize_cache(std::size_t layer_index, std::uint64_t rows) {
  Layer& layer = *layers_.at(layer_index);
  {
    const std::lock_guard lock(layer.transitions);
    layer.resize_cache(rows);
  }
  layer.setup.cache_rows = rows;
  if (!layer.hot_rows.empty()) hold(layer_index, std::vector<std::uint32_t>(layer.hot_rows));
}

void Tier::hold(std::size_t layer_index, std::span<const std::uint32_t> local_rows) {
  Layer& layer = *layers_.at(layer_index);
  if (layer.core->resident()) return;
  if (layer.setup.policy == "static") layer.hot_rows.assign(local_rows.begin(), local_rows.end());
  advance_filled_.clear();
  {
    const std::lock_guard lock(layer.transitions);
    layer.hold(local_rows, advance_filled_);
  }
  for (const std::uint32_t slot : advance_filled_) layer.advanced[slot / 64] |= std::uint64_t{1} << (slot % 64);
  fill_slots(layer);
}

void Tier::check(CheckReport& report, std::size_t stride, std::size_t offset) const {
  const auto* rows = static_cast<const std::uint32_t*>(rows_host_->host());
  const std::size_t lookups = std::size_t{options_.max_tokens} * spec_.rows_per_token();
  for (const auto& layer : layers_) {
    const RowChecker checker(spec_, layer->index, layer->shard, options_.geometry, options_.folds[layer->index],
                             *layer->origin, layer->seen, options_.output);
    checker.check({rows + layer->index * lookups, lookups}, {active_, options_.max_tokens}, layer->core->descriptors(),
                  rows_on_host(*layer->out, layer->out->bytes()), report, stride, offset);
    if (layer->status != StepStatus::ok) continue;
    for (const PageRead& read : layer->core->reads()) {
      const ImageSegment& segment = layer->source->image.segment(spec_.layers[layer->index].layer, options_.rank);
      const std::span<const std::byte> page(pool_->page(read.buffer), pool_->page_bytes());
      ++report.pages;
      // A record alone carries no checksum; the records themselves were compared above.
      const bool records =
          is_remote_source(layer->source->setup.source) && layer->source->setup.remote.granularity == Granularity::record;
      const PageFault fault = records ? check_stamp(page, read.page, segment.image, layer->source->image.nonce)
                                      : check_page(page, read.page, segment.image, layer->source->image.nonce);
      if (fault == PageFault::none) continue;
      ++report.mismatches;
      if (report.first_mismatch.empty())
        report.first_mismatch =
            fmt::format("layer {} page {}: {}", spec_.layers[layer->index].layer, read.page, to_string(fault));
    }
  }
}

const LayerCore& Tier::core(std::size_t layer_index) const { return *layers_[layer_index]->core; }

HostMemoryCount Tier::host_memory() const {
  HostMemoryCount count;
  std::uint64_t shared = tokens_->bytes() + rows_host_->bytes() + stamps_->bytes() + signals_->bytes();
  if (filling_) shared += filling_->bytes();
  if (pool_) shared += pool_->bytes();
  if (options_.skip_unseen) shared += options_.skip_unseen->bytes();
  if (chunk_) shared += chunk_->host_bytes();
  for (const auto& layer : layers_) {
    shared += layer->descriptors->bytes();
    if (const Directory* directory = layer->core->directory()) {
      shared += directory->bytes();
    } else {
      const ResidentTable& table = *layer->setup.table;
      if (table.host_bytes() > 0) count.full_geometry += layer->shard.rows * spec_.row_bytes;
      count.allocated += table.host_bytes();
    }
  }
  for (const auto& source : sources_) count.registered += source->pages->registered_bytes();
  count.full_geometry += shared;
  count.allocated += shared;
  return count;
}

std::string Tier::describe_source(std::size_t layer_index) const {
  const Layer& layer = *layers_[layer_index];
  if (!layer.source) return layer.setup.table->describe();
  return layer.source->pages->describe() + (layer.setup.read == ReadMode::on_demand ? ", on demand" : "");
}

std::string Tier::source_activity(std::size_t layer_index) const {
  const Layer& layer = *layers_[layer_index];
  return layer.source ? layer.source->pages->activity() : std::string();
}

}  // namespace slacktier
