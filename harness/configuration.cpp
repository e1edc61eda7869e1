#include "harness/configuration.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include <fmt/format.h>

#include "harness/generator.hpp"
#include "harness/sessions.hpp"
#include "reports/npy.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

std::int64_t as_count(std::uint64_t value) { return static_cast<std::int64_t>(value); }

std::optional<double> rate(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return {};
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string file_name(const std::string& workload, const std::string& placement) {
  std::string name = workload + "-" + placement;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  return name + ".npy";
}

std::vector<double> block_means(const std::vector<std::vector<double>>& blocks) {
  std::vector<double> means;
  for (const auto& block : blocks)
    means.push_back(std::accumulate(block.begin(), block.end(), 0.0) / static_cast<double>(block.size()));
  return means;
}

}  // namespace

StepTrace record_steps(const Campaign& campaign, const Workload& workload, const TableSpec& spec, const TokenMap& map,
                       std::uint64_t steps) {
  SessionOptions session_options;
  session_options.raw_vocabulary = spec.raw_vocabulary;
  std::unique_ptr<SessionSource> source = workload.traces.empty() ? generated_sessions(workload.name, campaign.seed)
                                                                  : open_sessions(workload.traces, session_options);
  std::unique_ptr<SessionSource> top_up;
  if (campaign.top_up && !workload.traces.empty()) {
    const auto kinds = generated_kinds();
    const bool known = std::find(kinds.begin(), kinds.end(), workload.name) != kinds.end();
    top_up = generated_sessions(known ? workload.name : kinds.front(), campaign.seed);
  }
  InterleaveOptions options;
  options.sessions = campaign.sessions;
  options.q = campaign.tokens_per_session;
  options.steps = steps;
  options.top_up = top_up.get();
  Interleaver interleaver(*source, spec, map, options);
  return StepTrace::record(interleaver, steps);
}

RankResult rank_result(const LayerSamples& samples, std::uint32_t rank, bool resident, bool skips) {
  RankResult result;
  result.rank = static_cast<int>(rank);
  result.lookups = as_count(samples.lookups);
  result.owned = as_count(samples.owned);
  if (!resident) {
    if (skips) result.skipped = as_count(samples.skipped);
    result.hit_rate = rate(samples.hits, samples.owned);
    result.reuse_rate = rate(samples.reused, samples.owned);
    result.p_any_miss = rate(samples.steps_with_miss, samples.pages.size());
    result.miss_pages_per_step = distribution(samples.pages);
    result.t_submit_us = distribution(samples.submit_us);
    result.t_done_us = distribution(samples.read_us);
  }
  result.resolve_us = distribution(samples.resolve_us);
  result.t_open_us = distribution(samples.open_us);
  result.stall_us = distribution(samples.stall_us);
  result.status = samples.status;
  return result;
}

void add_step_times(ConfigurationResult& result, const std::vector<std::vector<double>>& blocks,
                    const std::vector<std::vector<double>>* baseline, std::size_t common, std::span<const double> run_order,
                    std::uint64_t seed, const std::string& samples_dir) {
  std::vector<double> steps;
  for (const auto& block : blocks) steps.insert(steps.end(), block.begin(), block.end());
  result.steps = as_count(steps.size());
  result.step_ms = distribution(steps);
  if (!samples_dir.empty() && !steps.empty())
    result.samples = write_npy(samples_dir, file_name(result.workload, result.name), steps);
  result.block_mean_ms = block_means(blocks);
  for (const auto& block : blocks) result.block_steps.push_back(as_count(block.size()));
  if (result.block_mean_ms.size() >= 3 && run_order.size() >= result.block_mean_ms.size())
    result.run_order_slope_ms_per_block =
        run_order_slope(run_order.first(result.block_mean_ms.size()), result.block_mean_ms);
  BootstrapOptions bootstrap;
  bootstrap.seed = seed;
  if (common < 2) return;
  if (baseline == nullptr) {
    result.aa_check = aa_check(Blocks(blocks).first(common), bootstrap);
    return;
  }
  const auto base_means = block_means(*baseline);
  result.slowdown =
      slowdown(compare_blocks(Blocks(blocks).first(common), Blocks(*baseline).first(common), bootstrap),
               mann_whitney(std::span(result.block_mean_ms).first(common), std::span(base_means).first(common)));
}

Json common_settings(const Campaign& campaign, const TableSpec& spec, const StepModel& model, const std::string& device) {
  Json settings;
  settings["campaign"] = campaign.name;
  settings["model"] = model.name;
  settings["table"] = spec.name;
  settings["table_fingerprint"] = spec.fingerprint();
  settings["ranks"] = campaign.ranks;
  settings["shard_map"] = to_string(campaign.shard_map);
  settings["device"] = device;
  settings["sessions"] = campaign.sessions;
  settings["tokens_per_session"] = campaign.tokens_per_session;
  settings["warm"] = "generated";
  settings["warm_steps"] = campaign.warm_steps;
  settings["blocks"] = campaign.blocks;
  settings["block_steps"] = campaign.block_steps;
  settings["lead_steps"] = campaign.lead_steps;
  settings["graph"] = campaign.graph;
  settings["output"] = to_string(campaign.output);
  settings["prefill"] = campaign.prefill_reads ? "read" : "directory";
  settings["prefill_chunk"] = campaign.prefill_chunk;
  settings["seed"] = campaign.seed;
  settings["step_model_ms"] = static_cast<double>(model.step()) / 1e6;
  settings["windows_source"] = model.label;
  for (const auto& layer : spec.layers)
    settings["windows_ms"][std::to_string(layer.layer)] = static_cast<double>(model.window(layer.layer)) / 1e6;
  return settings;
}

}  // namespace slacktier
