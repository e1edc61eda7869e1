// From the samples of a run, live or modelled, to what a results file says of a configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "harness/interleave.hpp"
#include "harness/step_model.hpp"
#include "reports/results_file.hpp"
#include "tier/hash.hpp"
#include "tier/table.hpp"

namespace slacktier {

// Per measured step and layer of one configuration, in run order.
struct LayerSamples {
  std::vector<double> pages, resolve_us, submit_us, read_us, open_us, stall_us;  // submit and read only of steps that read
  std::uint64_t lookups = 0, owned = 0, skipped = 0, hits = 0, reused = 0, steps_with_miss = 0;
  std::map<std::string, std::int64_t> status;
};

// The steps that all placements of a workload replay: of its traces, or of the generator. Throws as Interleaver and
// StepTrace::record.
StepTrace record_steps(const Campaign& campaign, const Workload& workload, const TableSpec& spec, const TokenMap& map,
                       std::uint64_t steps);

// `resident`: the layer has no directory; `skips`: its placement delivers unseen rows as zeros.
RankResult rank_result(const LayerSamples& samples, std::uint32_t rank, bool resident, bool skips);

// Step times by block (ms) as statistics, and against the baseline's (null: this is the baseline, which gets the A/A check).
// The first `common` blocks are compared; `run_order` is when each was run. Samples go to `samples_dir` unless it is empty.
void add_step_times(ConfigurationResult& result, const std::vector<std::vector<double>>& blocks,
                    const std::vector<std::vector<double>>* baseline, std::size_t common, std::span<const double> run_order,
                    std::uint64_t seed, const std::string& samples_dir);

// What a results file's settings hold wherever the campaign ran.
Json common_settings(const Campaign& campaign, const TableSpec& spec, const StepModel& model, const std::string& device);

}  // namespace slacktier
