// Prefill: a chunk of tokens through the same directories, sources, pool and gather as a decode step, layer by layer, its
// pages in waves. Not captured: the caller's thread drives it while no step is under way.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "platforms/error.hpp"
#include "tier/live/parts.hpp"

namespace slacktier {

Tier::Chunk::Chunk(Device& device, const TableSpec& spec, std::uint32_t max_tokens, OutputFormat output)
    : tokens(device.allocate_host(std::size_t{max_tokens} * static_cast<std::size_t>(spec.max_ngram) * 4)),
      rows_device(device.allocate_device(spec.layers.size() * max_tokens * spec.rows_per_token() * 4)),
      rows_host(device.allocate_host(rows_device->bytes())),
      descriptors(device.allocate_host(std::size_t{max_tokens} * spec.rows_per_token() * sizeof(Descriptor))),
      at(device.allocate_host(std::size_t{max_tokens} * spec.rows_per_token() * 4)),
      out(device.allocate_device(std::size_t{max_tokens} * spec.rows_per_token() * spec.row_values * output_bytes(output))),
      plan(max_tokens * spec.rows_per_token(), static_cast<Descriptor*>(descriptors->host()),
           static_cast<std::uint32_t*>(at->host())) {
  report.layers.resize(spec.layers.size());
}

std::size_t Tier::Chunk::host_bytes() const {
  return tokens->bytes() + rows_host->bytes() + descriptors->bytes() + at->bytes();
}

const PrefillReport& Tier::prefill(Stream& main, std::span<const std::uint32_t> context, CheckReport* check,
                                   std::size_t stride, std::size_t offset) {
  const std::size_t tokens = context.size() / static_cast<std::size_t>(spec_.max_ngram);
  if (!chunk_ || tokens == 0 || tokens > options_.prefill_tokens)
    throw UsageError(
        fmt::format("prefill of {} tokens: this tier takes chunks of 1 to {}", tokens, options_.prefill_tokens));
  Chunk& chunk = *chunk_;
  PrefillReport& report = chunk.report;
  const Nanos begin = monotonic_clock().now();
  std::memcpy(chunk.tokens->host(), context.data(), context.size_bytes());
  const std::size_t lookups = tokens * spec_.rows_per_token();
  launch_hash(main, *chunk.tokens, *chunk.rows_device, static_cast<std::uint32_t>(tokens));
  main.copy(chunk.rows_host->host(), chunk.rows_device->device(), layers_.size() * lookups * sizeof(std::uint32_t));
  main.synchronize();
  report.tokens = static_cast<std::uint32_t>(tokens);
  report.indices = monotonic_clock().now() - begin;
  for (auto& layer : layers_) {
    const std::span<const std::uint32_t> rows(
        static_cast<const std::uint32_t*>(chunk.rows_host->host()) + layer->index * lookups, lookups);
    PrefillLayerReport& out = report.layers[layer->index];
    prefill_layer(main, *layer, rows, out);
    if (check) {
      const RowChecker checker(spec_, layer->index, layer->shard, options_.geometry, options_.folds[layer->index],
                               *layer->origin, layer->seen, options_.output);
      checker.check(rows, {}, chunk.plan.by_lookup(), rows_on_host(*chunk.out, lookups * row_output_bytes()), *check, stride,
                    offset);
    }
  }
  report.total = monotonic_clock().now() - begin;
  return report;
}

void Tier::prefill_layer(Stream& main, Layer& layer, std::span<const std::uint32_t> rows, PrefillLayerReport& report) {
  ChunkPlan& plan = chunk_->plan;
  report = {};
  const Nanos begin = monotonic_clock().now();
  {
    // Late pages of a wave given up may still come in.
    const std::lock_guard lock(layer.transitions);
    layer.core->plan_chunk(plan, rows);
  }
  report.resolve = monotonic_clock().now() - begin;

  GatherArgs args = gather_args(layer);
  args.out = chunk_->out->device();
  const auto gather = [&](ChunkPlan::List list) {
    if (list.first == list.last) return;
    args.descriptors = static_cast<const Descriptor*>(chunk_->descriptors->device()) + list.first;
    args.at = static_cast<const std::uint32_t*>(chunk_->at->device()) + list.first;
    args.lookups = list.last - list.first;
    main.launch("tier.gather", args);
  };
  std::size_t submitted = 0;
  bool starved = plan.starved();
  const auto submit_next = [&] {
    if (starved || submitted == plan.waves()) return;
    Batch& batch = *layer.batches[submitted % 2];
    // Reads of a step that was given up may still hold the batch, and its buffers.
    if (batch.busy.load(std::memory_order_acquire)) {
      starved = true;
      return;
    }
    batch.busy.store(true, std::memory_order_relaxed);
    batch.read.segment = layer.segment;
    batch.wave = Batch::Wave::in_flight;
    const auto reads = plan.reads(submitted);
    batch.wave_reads.assign(reads.begin(), reads.end());  // the source may need them longer than the plan lives
    batch.read.reads = batch.wave_reads;
    batch.read.faults = std::span(batch.faults).first(reads.size());
    batch.read.errors = std::span(batch.errors).first(reads.size());
    batch.read.epoch = ++wave_epoch_ | wave_bit;
    ++submitted;
    layer.source->pages->submit(batch.read);
  };
  submit_next();
  submit_next();
  gather(plan.ready());
  Nanos first = 0, last = 0;
  std::size_t wave = 0;
  for (; wave < submitted; ++wave) {
    Batch& batch = *layer.batches[wave % 2];
    if (!await_wave(layer, batch, wave)) {
      report.status = StepStatus::timed_out;
      report.fault = fmt::format("layer {}: prefill pages not in after {} ms", spec_.layers[layer.index].layer,
                                 options_.watchdog / 1'000'000);
      break;
    }
    if (first == 0) first = batch.read.submitted.load(std::memory_order_relaxed);
    last = std::max(last, batch.read.completed);
    if (layer.core->on_wave(plan, wave, batch.read.faults) != StepStatus::ok) {
      report.status = StepStatus::read_error;
      if (report.fault.empty()) report.fault = describe_fault(layer, batch);
    }
    batch.wave = Batch::Wave::none;
    batch.busy.store(false, std::memory_order_release);
    gather(plan.list(wave));
    main.synchronize();  // its buffers are the wave's after the next
    submit_next();
  }
  // What was given up, and what it starves, is delivered as zeros.
  if (wave < plan.waves()) {
    if (report.status == StepStatus::ok) report.status = StepStatus::no_buffers;
    for (std::size_t w = wave; w < plan.waves(); ++w) {
      // The wave that was late has been given up already.
      if (w > wave || report.status != StepStatus::timed_out) {
        const std::lock_guard lock(layer.transitions);
        give_up_wave(layer, w, w < submitted);
      }
      gather(plan.list(w));
    }
  }
  main.synchronize();
  layer.core->settle_chunk(plan);
  report.counts = plan.counts();
  report.waves = static_cast<std::uint32_t>(plan.waves());
  report.read = last - first;
  report.total = monotonic_clock().now() - begin;
}

// False when the watchdog gave the wave up.
bool Tier::await_wave(Layer& layer, Batch& batch, std::size_t wave) {
  const Nanos deadline = monotonic_clock().now() + options_.watchdog;
  std::uint32_t seen = wave_bell_.count();
  for (;;) {
    const Nanos left = deadline - monotonic_clock().now();
    {
      const std::lock_guard lock(layer.transitions);
      if (batch.wave == Batch::Wave::arrived) return true;
      if (left <= 0) {
        give_up_wave(layer, wave, true);
        return false;
      }
    }
    seen = wave_bell_.wait(seen, left);
  }
}

// Under the layer's lock.
void Tier::give_up_wave(Layer& layer, std::size_t wave, bool submitted) {
  Batch& batch = *layer.batches[wave % 2];
  const bool in_flight = submitted && batch.wave == Batch::Wave::in_flight;
  layer.core->abandon_wave(chunk_->plan, wave, batch.read.epoch, in_flight);
  if (!submitted) return;
  batch.wave = in_flight ? Batch::Wave::given_up : Batch::Wave::none;
  if (!in_flight) batch.busy.store(false, std::memory_order_release);
}

// On a thread of the source.
void Tier::wave_done(Layer& layer, Batch& batch) {
  const std::lock_guard lock(layer.transitions);
  if (batch.wave == Batch::Wave::given_up) {
    layer.core->on_pages(batch.read.epoch, {});
    batch.wave = Batch::Wave::none;
    batch.busy.store(false, std::memory_order_release);
  } else {
    batch.wave = Batch::Wave::arrived;
    wave_bell_.ring();
  }
}

}  // namespace slacktier
