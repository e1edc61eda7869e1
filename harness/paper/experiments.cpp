#include "harness/paper/experiments.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "harness/campaigns/campaigns.hpp"
#include "platforms/error.hpp"
#include "reports/paper.hpp"

namespace slacktier::paper {
namespace {

// Sessions that decode in a step. The paper's agents read 2.34 ms uncached, which by its own fit are 596 pages a rank and
// layer, not 768: about 102 of 128 sessions decode, the others wait for prefill. At 64 sessions and below all do (190 rows a
// step at 8).
std::uint32_t decoding(const Bench& bench, bool real) {
  if (real || bench.load != "agent" || bench.sessions < 128) return bench.sessions;
  return bench.sessions * 102 / 128;
}

}  // namespace

StepModel model_of(const Bench& bench) {
  const bool v41 = bench.table == "engram_v41";
  StepModel model;
  model.name = v41 ? "DeepSeek-V4.1-Flash" : "Qwen3.8-Flash-Next";
  model.label = fmt::format("windows: the paper's, scaled to a step of {:.2f} ms, not this machine", bench.step_ms);
  // At the step that the windows were measured with; then all in proportion.
  const double step = v41 ? 29.4 : bench.step_ms;
  const int layers = v41 ? 40 : 48, late = v41 ? 14 : 47;
  std::vector<double> ms{bench.window1_ms};
  ms.resize(static_cast<std::size_t>(late), (bench.window_late_ms - bench.window1_ms) / (late - 1));
  ms.resize(static_cast<std::size_t>(layers), (step - bench.window_late_ms) / (layers - late));
  for (const double layer : ms)
    model.layer_time.push_back(static_cast<Nanos>(std::llround(layer * bench.step_ms / step * 1e6)));
  return model;
}

Placement both(const std::string& name, std::uint32_t disks, int threads, std::uint64_t rows1, std::uint64_t rows14,
               const std::string& source) {
  LayerPlacement one = on_disks(disks, threads, rows1), fourteen = on_disks(disks, threads, rows14);
  one.source = fourteen.source = source;
  return v41_placement(name, one, fourteen);
}

Experiment::Experiment(const Bench& bench, const PaperRunOptions& options, std::vector<ConfigurationResult>& results,
                       Json& settings)
    : bench_(bench), spec_(load_table_spec(bench.table)), results_(results) {
  const auto traces = options.traces.find(bench.load);
  const bool real = traces != options.traces.end();
  campaign_.name = "paper";
  campaign_.table = bench.table;
  campaign_.sessions = decoding(bench, real);
  campaign_.warm_steps = options.warm_steps;
  campaign_.blocks = options.blocks;
  campaign_.block_steps = options.block_steps;
  campaign_.lead_steps = 0;
  campaign_.seed = options.seed;
  Placement dram;
  dram.name = "host-DRAM table";
  for (const auto& layer : spec_.layers) dram.layers[layer.layer] = {};
  campaign_.placements = {dram, both("on 4 disks", 4, 4, 0, 0)};

  options_.model = model_of(bench);
  options_.services = paper_services();
  options_.costs = paper_costs();
  options_.step_jitter = bench.step_jitter;
  options_.quiet = options.quiet;
  options_.stop = options.stop;
  const TokenMap map = options.token_map.empty() || !real ? TokenMap() : TokenMap::load(options.token_map, spec_);
  const Workload workload{real ? bench.load : "paper-" + bench.load, real ? traces->second : std::vector<std::string>()};
  workload_ = std::make_unique<SimWorkload>(spec_, campaign_, workload, map, options_);
  settings["workloads"].push_back({{"name", bench.load},
                                   {"batch", bench.sessions},
                                   {"decoding", campaign_.sessions},
                                   {"table", bench.table},
                                   {"step_model_ms", bench.step_ms},
                                   {"sessions", workload_->trace().describe()}});
  baseline_run_ = workload_->run(dram);
  baseline_ = add(dram, baseline_run_, true);
}

Experiment::~Experiment() = default;

Outcome Experiment::run(const Placement& placement, std::uint64_t page_cache_pages) {
  return add(placement, workload_->run(placement, page_cache_pages), false);
}

Outcome Experiment::run_controlled(const Placement& placement) {
  SplitSearch search(placement);
  return add(placement, workload_->run(with_room_to_split(placement), search), false);
}

Outcome Experiment::add(const Placement& placement, const SimWorkload::Run& run, bool first) {
  ConfigurationResult result =
      workload_->result(placement, run, first ? nullptr : &baseline_run_, bench_.label + campaign_.placements.front().name);
  result.name = bench_.label + placement.name;
  result.workload = bench_.load;
  result.paper.reset();  // the cells say it
  Outcome out;
  out.step_ms = *result.step_ms.mean;
  out.p99_ms = result.step_ms.p99;
  if (!first) {
    out.slowdown_ms = out.step_ms - baseline_.step_ms;
    out.slowdown_pct = 100 * (out.step_ms / baseline_.step_ms - 1);
  }
  out.host_gib = runtime_gib + static_cast<double>(run.host_bytes_full) / (1 << 30);
  for (const LayerResult& layer : result.layers) {
    double hits = 0, owned = 0;
    for (const RankResult& rank : layer.ranks) {
      hits += rank.hit_rate.value_or(0) * static_cast<double>(rank.owned);
      owned += static_cast<double>(rank.owned);
      if (rank.t_done_us.mean) out.read_ms[layer.k] = std::max(out.read_ms[layer.k], *rank.t_done_us.mean / 1e3);
    }
    out.hit[layer.k] = owned > 0 ? hits / owned : 0;
  }
  results_.push_back(std::move(result));
  return out;
}

}  // namespace slacktier::paper
