#include "harness/sim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>

#include "harness/generator/tokens.hpp"
#include "harness/hot_rows.hpp"
#include "harness/sim/step_feed.hpp"
#include "platforms/error.hpp"
#include "platforms/progress.hpp"
#include "platforms/provenance.hpp"
#include "tier/resident_table.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

std::vector<std::uint32_t> disk_counts(const Campaign& campaign) {
  std::set<std::uint32_t> counts;
  for (const auto& placement : campaign.placements)
    for (const auto& [k, layer] : placement.layers)
      if (!is_resident_source(layer.source) && layer.disks > 1) counts.insert(layer.disks);
  return {counts.begin(), counts.end()};
}

std::vector<std::uint32_t> all_ranks(const Campaign& campaign, const SimOptions& options) {
  if (!options.ranks.empty()) return options.ranks;
  std::vector<std::uint32_t> ranks(campaign.ranks);
  std::iota(ranks.begin(), ranks.end(), 0u);
  return ranks;
}

// Step s draws the same whatever the placement, so that placements are compared under equal conditions.
StepDraw draw_step(std::uint64_t seed, std::uint64_t step, double step_jitter) {
  generator::Random random(generator::scramble(seed * 0x9E3779B97F4A7C15u + step));
  StepDraw draw;
  draw.compute = std::exp(step_jitter * random.normal() - step_jitter * step_jitter / 2);
  draw.read_normal = random.normal();
  draw.release_normal = random.normal();
  return draw;
}

}  // namespace

SimWorkload::SimWorkload(const TableSpec& spec, const Campaign& campaign, const Workload& workload, const TokenMap& map,
                         const SimOptions& options)
    : spec_(spec),
      campaign_(campaign),
      workload_(workload),
      options_(options),
      ranks_(all_ranks(campaign, options)),
      trace_(record_steps(campaign, workload, spec, map, campaign.steps())),
      passes_(trace_, spec, campaign, disk_counts(campaign), options.stop) {}

PassKey SimWorkload::pass_key(const Placement& placement, std::size_t layer_index, std::uint64_t page_cache_pages) const {
  const LayerPlacement& wanted = placement.layers.at(spec_.layers[layer_index].layer);
  PassKey key;
  key.layer_index = layer_index;
  key.resident = is_resident_source(wanted.source);
  key.warm_steps = campaign_.warm_steps;
  if (key.resident) return key;
  key.cache_rows = wanted.cache_rows_per_rank;
  key.policy = placement.cache_policy;
  key.hot_rows = placement.hot_rows;
  key.skip_unseen = placement.skip_unseen;
  key.row_dedup = placement.row_dedup;
  key.page_dedup = placement.page_dedup;
  if (uses_page_cache(wanted.source)) key.page_cache_pages = page_cache_pages;
  return key;
}

SimWorkload::Run SimWorkload::run(const Placement& placement, std::uint64_t page_cache_pages) {
  std::vector<const PassResult*> passes;
  for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
    PassKey key = pass_key(placement, l, page_cache_pages);
    for (const std::uint32_t rank : ranks_) {
      key.rank = rank;
      passes.push_back(&passes_.at(key));
    }
  }
  KeptSteps feed(std::move(passes));
  return run(placement, feed);
}

SimWorkload::Run SimWorkload::run(const Placement& placement, SplitSearch& search) {
  std::vector<std::unique_ptr<LayerPass>> passes;
  std::vector<int> layers;
  for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
    PassKey key = pass_key(placement, l, 0);
    for (const std::uint32_t rank : ranks_) {
      key.rank = rank;
      passes.push_back(
          std::make_unique<LayerPass>(trace_, spec_, campaign_, key, key.resident ? 0 : search.budget(), options_.stop));
      passes.back()->warm();
      layers.push_back(spec_.layers[l].layer);
    }
  }
  SplitSteps feed(std::move(passes), std::move(layers), campaign_.warm_steps, search);
  return run(placement, feed);
}

SimWorkload::Run SimWorkload::run(const Placement& placement, StepFeed& feed) {
  const std::size_t n_layers = spec_.layers.size(), n_ranks = ranks_.size();
  VirtualClock clock(spec_, options_.model, placement, static_cast<std::uint32_t>(n_ranks), options_.services,
                     options_.costs);
  Run run;
  for (std::size_t i = 0; i < n_layers * n_ranks; ++i) {
    const std::size_t l = i / n_ranks;
    const Shard shard = make_shard(spec_, l, campaign_.shard_map, campaign_.ranks, ranks_[i % n_ranks]);
    const bool dram = placement.layers.at(spec_.layers[l].layer).source == "dram";
    run.host_bytes_full += feed.host_bytes(i) + (dram ? shard.rows * spec_.row_bytes : 0);
  }
  // Of a node: what some of its ranks hold stands for all.
  run.host_bytes_full = run.host_bytes_full * campaign_.ranks / n_ranks;

  run.samples.resize(n_layers * n_ranks);
  std::vector<RankStep> in(n_layers * n_ranks);
  const std::uint64_t per_block = campaign_.lead_steps + campaign_.block_steps;
  for (std::uint32_t block = 0; block < campaign_.blocks; ++block) {
    run.blocks.emplace_back().reserve(campaign_.block_steps);
    for (std::uint64_t s = 0; s < per_block; ++s) {
      const std::uint64_t index = block * per_block + s;
      feed.to(index);
      if (s < campaign_.lead_steps) continue;
      for (std::size_t i = 0; i < in.size(); ++i) {
        const StepOutcome& outcome = feed.outcome(i);
        const std::uint32_t disks = clock.disks(i / n_ranks);
        in[i] = {outcome.owned, outcome.misses, outcome.pages, outcome.cached_pages,
                 disks > 1 ? feed.pages_on(i, disks) : nullptr};
      }
      const StepTimes& times = clock.step(in, draw_step(campaign_.seed, index, options_.step_jitter));
      run.blocks.back().push_back(times.step_us / 1e3);
      const std::uint64_t lookups = trace_.step(campaign_.warm_steps + index).decode_tokens * spec_.rows_per_token();
      double stalled_us = 0;
      for (std::size_t l = 0; l < n_layers; ++l) {
        double slowest = 0;
        for (std::size_t r = 0; r < n_ranks; ++r) slowest = std::max(slowest, times.ranks[l * n_ranks + r].stall_us);
        stalled_us += slowest;
      }
      feed.took(stalled_us / 1e3);
      for (std::size_t i = 0; i < in.size(); ++i) {
        const StepOutcome& outcome = feed.outcome(i);
        const RankTimes& t = times.ranks[i];
        LayerSamples& out = run.samples[i];
        double first = -1;  // this rank's first submission of the step: s of all its layers
        for (std::size_t l = 0; l < n_layers; ++l)
          if (const double at = times.ranks[l * n_ranks + i % n_ranks].submitted_us; at >= 0 && (first < 0 || at < first))
            first = at;
        out.lookups += lookups;
        out.owned += outcome.owned;
        out.skipped += outcome.skipped;
        out.hits += outcome.hits;
        out.reused += outcome.reused;
        ++out.status["ok"];
        out.pages.push_back(outcome.pages);
        out.resolve_us.push_back(t.resolve_us);
        out.open_us.push_back(t.opened_us);
        out.stall_us.push_back(t.stall_us);
        if (outcome.pages == 0) continue;
        ++out.steps_with_miss;
        out.submit_us.push_back(t.submitted_us);
        out.read_us.push_back(t.arrived_us - first);
      }
    }
  }
  return run;
}

ConfigurationResult SimWorkload::result(const Placement& placement, const Run& run, const Run* baseline,
                                        const std::string& baseline_name) const {
  ConfigurationResult result;
  result.name = placement.name;
  result.workload = workload_.name;
  result.placement = to_json(placement);
  std::vector<double> order(run.blocks.size());
  std::iota(order.begin(), order.end(), 0.0);
  if (baseline) result.baseline = baseline_name;
  add_step_times(result, run.blocks, baseline ? &baseline->blocks : nullptr, run.blocks.size(), order, campaign_.seed,
                 options_.samples_dir);
  result.host_memory.computed_full_geometry_bytes = static_cast<std::int64_t>(run.host_bytes_full);
  const std::size_t n_ranks = ranks_.size();
  for (std::size_t l = 0; l < spec_.layers.size(); ++l) {
    LayerResult layer;
    layer.k = spec_.layers[l].layer;
    layer.window_ms = static_cast<double>(options_.model.window(layer.k)) / 1e6;
    const bool resident = is_resident_source(placement.layers.at(layer.k).source);
    for (std::size_t r = 0; r < n_ranks; ++r)
      layer.ranks.push_back(rank_result(run.samples[l * n_ranks + r], ranks_[r], resident, !placement.skip_unseen.empty()));
    result.layers.push_back(layer);
  }
  result.paper = paper_value(campaign_, placement.name, workload_.name);
  return result;
}

double directories_gib(const TableSpec& spec) {
  double rows = 0;
  for (const auto& layer : spec.layers) rows += static_cast<double>(layer.rows);
  return rows * sizeof(std::uint32_t) / (1 << 30);
}

std::vector<std::string> plan_simulated(const Campaign& campaign) {
  const TableSpec spec = load_table_spec(campaign.table);
  const std::uint64_t steps = campaign.workloads.size() * campaign.placements.size() * campaign.blocks *
                              (campaign.lead_steps + campaign.block_steps);
  return {fmt::format("campaign {}: {}", campaign.name, campaign.summary),
          "virtual clock: nothing is staged or read; reads are modelled",
          fmt::format("host memory: up to {:.1f} GiB of directories", directories_gib(spec)),
          fmt::format("runs {} modelled steps, each after {} steps through the directories", steps, campaign.warm_steps)};
}

Envelope simulate_campaign(const Campaign& campaign, const SimOptions& options) {
  validate(campaign);
  if (options.controller) require_one_placement(campaign, "--controller");
  if (campaign.prefill_reads)
    throw UsageError(
        "--device sim: prefill by reads is for a live tier; on the virtual clock it passes the directories: leave out "
        "--prefill read");
  const TableSpec spec = load_table_spec(campaign.table);
  const int depth = static_cast<int>(options.model.layer_time.size());
  for (const auto& layer : spec.layers)
    if (layer.layer >= depth)
      throw UsageError(
          fmt::format("table {} is read at layer {}, the step model has {} layers", spec.name, layer.layer, depth));
  const TokenMap map = options.token_map.empty() ? TokenMap() : TokenMap::load(options.token_map, spec);
  for (const std::uint32_t rank : options.ranks)
    if (rank >= campaign.ranks)
      throw UsageError(fmt::format("rank {} of {} ranks: ranks count from 0", rank, campaign.ranks));

  Envelope envelope;
  envelope.kind = "results";
  envelope.settings = common_settings(campaign, spec, options.model, "sim");
  envelope.settings["measured_ranks"] = all_ranks(campaign, options);
  envelope.settings["service"] = options.services.label();
  envelope.settings["costs"] = options.costs.label;
  envelope.settings["step_jitter"] = options.step_jitter;
  envelope.warnings.push_back({"device_sim",
                               fmt::format("device: sim; times are modelled, nothing was read: {}; {}",
                                           options.services.label(), options.costs.label),
                               "/settings/device"});
  if (!options.model.measured_here) envelope.warnings.push_back({"windows_assumed", options.model.label, "/settings/model"});
  std::set<std::string> other;
  for (const Placement& placement : campaign.placements)
    for (const auto& [k, layer] : placement.layers)
      if (!is_resident_source(layer.source) && !options.services.measured(layer))
        other.insert(fmt::format("{} on {} disks with {} threads", layer.source, layer.disks, layer.threads));
  for (const std::string& what : other)
    envelope.warnings.push_back(
        {"service_assumed", fmt::format("read times of {}: not measured; the nearest measured ones are used", what), ""});
  for (const auto& placement : campaign.placements)
    if (!placement.skip_unseen.empty())
      envelope.warnings.push_back({"rows_skipped",
                                   fmt::format("{}: lossy: rows that are not in {} are delivered as zeros without a read",
                                               placement.name, placement.skip_unseen),
                                   ""});

  std::vector<ConfigurationResult> results;
  for (const Workload& workload : campaign.workloads) {
    SimWorkload sim(spec, campaign, workload, map, options);
    envelope.settings["workloads"].push_back({{"name", workload.name}, {"sessions", sim.trace().describe()}});
    if (workload.traces.empty() || sim.trace().sessions_topped_up() > 0)
      envelope.warnings.push_back({"sessions_generated", fmt::format("{}: {}", workload.name, sim.trace().describe()), ""});
    Progress progress(fmt::format("{}: placements", workload.name), campaign.placements.size(), ProgressUnit::steps,
                      stderr_progress(options.quiet));
    SimWorkload::Run baseline;
    for (const Placement& placement : campaign.placements) {
      const bool first = &placement == &campaign.placements.front();
      SimWorkload::Run run;
      if (options.controller && !first) {
        SplitSearch search(placement);
        run = sim.run(with_room_to_split(placement), search);
        envelope.settings["controller"][workload.name] = search.describe();
      } else {
        run = sim.run(placement);
      }
      results.push_back(sim.result(placement, run, first ? nullptr : &baseline, campaign.placements.front().name));
      if (first) baseline = std::move(run);
      progress.advance();
    }
  }
  set_configurations(envelope, results);
  return envelope;
}

}  // namespace slacktier
