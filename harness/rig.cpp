#include "harness/rig.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "harness/hot_rows.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"

namespace slacktier {
namespace {

const char* status_name(StepStatus status) {
  switch (status) {
    case StepStatus::ok:
      return "ok";
    case StepStatus::read_error:
      return "read_error";
    case StepStatus::timed_out:
      return "timed_out";
    case StepStatus::no_buffers:
      return "no_buffers";
  }
  return "unknown";
}

double us(Nanos t) { return static_cast<double>(t) / 1e3; }

}  // namespace

Rig::Rig(Device& device, const TableSpec& spec, const Campaign& campaign, const Placement& placement, const StepModel& model,
         const Images& images, const ResidentTables& tables)
    : spec_(spec), campaign_(campaign), model_(model), placement_(placement), layers_(spec.layers.size()) {
  prefills_.layers.resize(spec.layers.size());
  const std::uint64_t rss_before = read_process_memory().resident;
  TierOptions options;
  options.shard_map = campaign.shard_map;
  options.ranks = campaign.ranks;
  options.rank = campaign.rank;
  options.max_tokens = campaign.sessions * campaign.tokens_per_session;
  if (campaign.prefill_reads) options.prefill_tokens = campaign.prefill_chunk;
  options.output = campaign.output;
  options.geometry = images.geometry();
  options.folds = images.folds();
  options.rows = images.shared_rows();
  options.first_layer_first = placement.first_layer_first;
  options.row_dedup = placement.row_dedup;
  options.page_dedup = placement.page_dedup;
  if (!placement.skip_unseen.empty())
    options.skip_unseen = SeenSet::load(placement.skip_unseen, spec, campaign.shard_map, campaign.ranks, campaign.rank);
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerPlacement& wanted = placement.layers.at(spec.layers[l].layer);
    LayerSetup setup;
    setup.source = wanted.source;
    setup.wrappers = wanted.wrappers;
    setup.read = wanted.on_demand ? ReadMode::on_demand : ReadMode::prefetch;
    setup.drop_cache = wanted.drop_cache;
    setup.hints = wanted.hints;
    setup.threads = wanted.threads;
    setup.cache_rows = wanted.cache_rows_per_rank;
    setup.cache_rows_reserved = wanted.cache_rows_reserved_per_rank;
    setup.policy = placement.cache_policy;
    setup.peer = wanted.peer;
    if (is_resident_source(wanted.source))
      setup.table = &tables.at(l, wanted);
    else if (is_remote_source(wanted.source))
      setup.remote = wanted.remote;
    else
      setup.disks = images.paths(wanted.disks);
    options.layers.push_back(setup);
  }
  tier_ = std::make_unique<Tier>(device, spec, options);

  main_ = device.create_stream("model");
  if (campaign.graph) {
    device.begin_capture(*main_);
    enqueue();
    graph_ = device.end_capture(*main_);
  }
  rss_growth_ = read_process_memory().resident - std::min(read_process_memory().resident, rss_before);
}

void Rig::enqueue() {
  tier_->enqueue_begin(*main_);
  if (model_.lead_time > 0) main_->compute(model_.lead_time);
  for (std::size_t k = 0; k < model_.layer_time.size(); ++k) {
    for (std::size_t l = 0; l < spec_.layers.size(); ++l)
      if (spec_.layers[l].layer == static_cast<int>(k)) tier_->enqueue_layer(*main_, l);
    main_->compute(model_.layer_time[k]);
  }
  tier_->enqueue_end(*main_);
}

void Rig::warm(const StepTrace& trace, std::uint64_t steps) {
  const std::uint64_t rss_before = read_process_memory().resident;
  if (placement_.cache_policy == "static") {
    hold_hot_rows(trace, steps);
  } else {
    for (std::uint64_t s = 0; s < steps; ++s) {
      const StepView step = trace.step(s);
      tier_->advance(step.prefill_context);
      tier_->advance(active_context(step));
    }
    tier_->fill_advanced();
  }
  rss_growth_ += read_process_memory().resident - std::min(read_process_memory().resident, rss_before);
}

std::span<const std::uint32_t> Rig::active_context(const StepView& step) {
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  active_context_.clear();
  for (std::size_t t = 0; t < step.active.size(); ++t)
    if (step.active[t])
      active_context_.insert(active_context_.end(), step.context.begin() + static_cast<std::ptrdiff_t>(t * order),
                             step.context.begin() + static_cast<std::ptrdiff_t>((t + 1) * order));
  return active_context_;
}

void Rig::hold_hot_rows(const StepTrace& trace, std::uint64_t steps) {
  std::map<int, std::vector<std::uint32_t>> listed;
  if (!placement_.hot_rows.empty()) listed = read_hot_rows(placement_.hot_rows, spec_);
  const auto hash = make_hash(spec_);
  for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
    const Directory* directory = tier_->core(l).directory();
    if (!directory) continue;
    const Shard shard = make_shard(spec_, l, campaign_.shard_map, campaign_.ranks, campaign_.rank);
    if (!placement_.hot_rows.empty()) {
      const auto rows_of = listed.find(spec_.layers[l].layer);
      if (rows_of == listed.end())
        throw UsageError(fmt::format("{}: has no rows for layer {}", placement_.hot_rows, spec_.layers[l].layer));
      tier_->hold(l, owned_rows(rows_of->second, shard));
      continue;
    }
    tier_->hold(l, learn_hot_rows(trace, steps, spec_, *hash, l, shard, directory->reserved()));
  }
}

void Rig::step(const StepView& step, bool measured) {
  if (!step.prefill_context.empty()) prefill(step, measured);
  tier_->begin_step(step.context, step.active);
  if (graph_)
    graph_->launch(*main_);
  else
    enqueue();
  main_->synchronize();
  const StepReport& report = tier_->finish_step();
  for (const auto& layer : report.layers)
    if (layer.status != StepStatus::ok)
      throw DeviceError(fmt::format("{}: step {}: {}", placement_.name, report.epoch,
                                    layer.fault.empty() ? status_name(layer.status) : layer.fault));
  if (campaign_.check) tier_->check(checks_);
  if (measured) record(report);
}

// The prefills of a step as chunks, whichever sessions they belong to, as engines batch them.
void Rig::prefill(const StepView& step, bool measured) {
  if (!campaign_.prefill_reads) {
    tier_->advance(step.prefill_context);
    tier_->fill_advanced();
    return;
  }
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  // One row in 16 of a chunk is compared with its origin, another one each time.
  constexpr std::size_t stride = 16;
  for (std::size_t begin = 0; begin < step.prefill_context.size(); begin += campaign_.prefill_chunk * order) {
    const std::size_t ids = std::min(campaign_.prefill_chunk * order, step.prefill_context.size() - begin);
    const PrefillReport& report =
        tier_->prefill(*main_, step.prefill_context.subspan(begin, ids), campaign_.check ? &checks_ : nullptr, stride,
                       prefills_.chunk_ms.size() % stride);
    for (const auto& layer : report.layers)
      if (layer.status != StepStatus::ok)
        throw DeviceError(
            fmt::format("{}: prefill: {}", placement_.name, layer.fault.empty() ? status_name(layer.status) : layer.fault));
    if (!measured) continue;
    prefills_.tokens += report.tokens;
    prefills_.chunk_ms.push_back(static_cast<double>(report.total) / 1e6);
    for (std::size_t l = 0; l < report.layers.size(); ++l) {
      const PrefillLayerReport& in = report.layers[l];
      PrefillSamples::Layer& out = prefills_.layers[l];
      out.pages.push_back(in.counts.pages);
      out.waves.push_back(in.waves);
      out.read_ms.push_back(static_cast<double>(in.read) / 1e6);
      out.total_ms.push_back(static_cast<double>(in.total) / 1e6);
      out.owned += in.counts.owned;
      out.hits += in.counts.hits;
      out.reused += in.counts.reused;
      ++out.status[status_name(in.status)];
    }
  }
}

void Rig::record(const StepReport& report) {
  blocks_.back().push_back(static_cast<double>(report.step) / 1e6);
  Nanos s = -1;  // the step's first page submission: s of every layer
  for (const auto& layer : report.layers)
    if (layer.submitted >= 0 && (s < 0 || layer.submitted < s)) s = layer.submitted;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const LayerReport& in = report.layers[l];
    LayerSamples& out = layers_[l];
    out.lookups += in.counts.lookups;
    out.owned += in.counts.owned;
    out.skipped += in.counts.skipped;
    out.hits += in.counts.hits;
    out.reused += in.counts.reused;
    ++out.status[status_name(in.status)];
    out.pages.push_back(in.counts.pages);
    out.resolve_us.push_back(us(in.resolve_end - in.resolve_begin));
    out.open_us.push_back(us(in.opened));
    out.stall_us.push_back(us(in.stall));
    if (in.counts.pages == 0) continue;
    ++out.steps_with_miss;
    out.submit_us.push_back(us(in.submitted));
    out.read_us.push_back(us(in.arrived - s));
  }
}

}  // namespace slacktier
