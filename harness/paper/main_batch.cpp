#include "harness/paper/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/campaigns/campaigns.hpp"
#include "platforms/host.hpp"
#include "reports/paper.hpp"

namespace slacktier::paper {

// The step that the paper's baseline takes, and the spread that makes its p99.
Bench Evaluation::main_bench(const std::string& load) const {
  const PaperBaseline baseline = paper_table2_baseline();
  Bench bench;
  bench.load = load;
  bench.step_ms = baseline.mean_ms.at(load);
  bench.step_jitter = std::log(baseline.p99_ms.at(load) / bench.step_ms) / 2.3263478740408408;
  bench.window1_ms = paper_.at("exposure_model").at("fitted_W1_ms").get<double>();
  bench.window_late_ms = paper_windows().window_ms.at(14);
  return bench;
}

void Evaluation::main_batch(const std::string& load) {
  Experiment experiment(main_bench(load), options_, configurations_, out_.results.settings);
  const auto uncached = table2(experiment, load);
  table9(experiment, load, uncached);
  table4(experiment, load);
  budgets(experiment, load);
  sharing(experiment, load);
  remote(experiment, load);
  page_cache(experiment, load);
  skipping(experiment, load);
}

// Returns the outcomes of placements that Table 9 repeats.
std::map<std::string, Outcome> Evaluation::table2(Experiment& experiment, const std::string& load) {
  const PaperBaseline baseline = paper_table2_baseline();
  const std::string t = "Table 2", p99 = load + "_p99";
  cell(t, "host-DRAM table", load, "step_ms", baseline.mean_ms.at(load), experiment.baseline().step_ms, true);
  cell(t, "host-DRAM table", load, "p99_ms", baseline.p99_ms.at(load), experiment.baseline().p99_ms, true);
  cell(t, "host-DRAM table", load, "host_gib", baseline.host_gib, experiment.baseline().host_gib, true);
  std::map<std::string, Outcome> outcomes;
  for (const Placement& placement : placement_campaign().placements) {
    const auto row = paper_row(placement.name);
    if (!row || row->table != t) continue;
    const Outcome out = experiment.run(placement);
    // Its read time gave the rank's own time per page on four disks (harness/sim/paper_services.cpp).
    const bool fitted = placement.name == "both on 4 disks" && load == "agent" && !real();
    cell(t, placement.name, load, "slowdown_pct", row->slowdown_pct.at(load), out.slowdown_pct, fitted);
    cell(t, placement.name, load, "p99_ms", row->p99_ms.at(load), out.p99_ms, fitted);
    if (row->host_gib) cell(t, placement.name, load, "host_gib", *row->host_gib, out.host_gib);
    outcomes[placement.name] = out;
  }
  // The first gave the share of agents that decode; what the traffic hits gave none of these.
  const Json& reads = paper_.at("read_time_ms_B128");
  if (load == "agent") {
    cell("read times", "layer 1, uncached", load, "read_ms", Published(reads.at("L1_nvme_uncached")),
         outcomes.at("both on 1 disk").read_ms.at(1), !real());
    cell("read times", "layer 1, cache split evenly", load, "read_ms", Published(reads.at("L1_nvme_split_cache")),
         outcomes.at("both on 1 disk, cache split evenly").read_ms.at(1));
    cell("read times", "layer 14, uncached", load, "read_ms", Published(reads.at("L14_nvme_uncached")),
         outcomes.at("both on 1 disk").read_ms.at(14));
  }
  return outcomes;
}

// Whether the run is long enough for a controller to change anything, and all directories fit in memory at once.
bool Evaluation::controller_fits() {
  const SplitSearchOptions search;
  const std::uint64_t steps = std::uint64_t{options_.blocks} * options_.block_steps;
  const std::uint64_t least = 2 * search.observed_steps + search.settle_steps;
  const double gib = directories_gib(load_table_spec("engram_v41"));
  const double available = static_cast<double>(read_host_facts().memory_available) / (1 << 30);
  if (steps < least)
    controller_left_out_ = fmt::format("{} steps are too few for it to observe twice, it takes {}", steps, least);
  else if (available > 0 && available < 1.2 * gib)
    controller_left_out_ = fmt::format("it takes {:.1f} GiB of memory, {:.1f} GiB are free", 1.2 * gib, available);
  return controller_left_out_.empty();
}

void Evaluation::table9(Experiment& experiment, const std::string& load, const std::map<std::string, Outcome>& known) {
  const std::string t = "Table 9 and Figure 3";
  PlotSeries ours{load + ", virtual clock", {}, true, true}, theirs{load + ", paper", {}, false, true};
  const double base = experiment.baseline().step_ms;
  for (const Json& row : paper_.at("table9_allocation_sweep")) {
    const std::string name = row.at("config").get<std::string>();
    std::optional<Outcome> out;
    std::optional<double> split;
    bool controlled = false;
    if (name.starts_with("1 disk, f=")) {
      split = std::stod(name.substr(10));
      const auto first = static_cast<std::uint64_t>(std::llround(*split * static_cast<double>(million)));
      out = experiment.run(both(name, 1, 1, first, million - first));
    } else if (name == "4 disks, 4 threads, no cache") {
      out = experiment.run(both(name, 4, 4, 0, 0));
    } else if (name == "4 disks, 4 threads, f=0.5") {
      out = experiment.run(both(name, 4, 4, million / 2, million / 2));
    } else if (name.starts_with("L1 DRAM")) {
      out = known.at("L1 DRAM, L14 on 1 disk");
    } else if (const std::string start = "1 disk, controller from f="; name.starts_with(start) && controller_fits()) {
      controlled = true;
      const auto first = static_cast<std::uint64_t>(std::llround(std::stod(name.substr(start.size())) * million));
      out = experiment.run_controlled(both(name, 1, 1, first, million - first));
    }
    if (!out) continue;  // the baseline has its cells
    const bool fitted = name == "4 disks, 4 threads, no cache" && load == "agent" && !real();
    cell(t, name, load, "step_ms", Published(row.at(load + "_step")), out->step_ms, fitted);
    cell(t, name, load, "p99_ms", Published(row.at(load + "_p99")), out->p99_ms, fitted);
    // What the traffic was made for, but for the controller, which has several splits. At f = 0 there is nothing to hit.
    if (row.at(load + "_l1_hit").is_number() && split.value_or(0.5) > 0)
      cell(t, name, load, "l1_hit", Published(row.at(load + "_l1_hit")), out->hit.at(1), !real() && !controlled);
    if (!split) continue;
    ours.points.push_back({*split, out->slowdown_pct, {}, {}});
    theirs.points.push_back({*split, 100 * (row.at(load + "_step").get<double>() / base - 1), {}, {}});
  }
  Plot& plot = out_.figures["figure3.svg"];
  plot.title = "Slowdown against the share f of a million rows that layer 1 gets";
  plot.x_label = "f";
  plot.y_label = "slowdown in %";
  plot.series.push_back(ours);
  if (!real()) plot.series.push_back(theirs);
}

void Evaluation::table4(Experiment& experiment, const std::string& load) {
  const Placement full = both("full design (even split)", 1, 1, million / 2, million / 2);
  const Placement late = both("L14-only cache", 1, 1, 0, million);
  const auto changed = [](Placement placement, const char* name, bool first, bool dedup) {
    placement.name = name;
    placement.first_layer_first = first;
    placement.row_dedup = placement.page_dedup = dedup;
    return placement;
  };
  for (const Placement& placement :
       {full, changed(full, "no layer-1-first I/O", false, true), changed(full, "no in-step dedup", true, false), late,
        changed(late, "L14-only cache, no layer-1-first I/O", false, true)}) {
    const auto row = paper_row(placement.name);
    const Outcome out = experiment.run(placement);
    cell("Table 4", placement.name, load, "step_ms", row ? Published(row->mean_ms.at(load)) : Published(), out.step_ms);
  }
}

void Evaluation::budgets(Experiment& experiment, const std::string& load) {
  const Json& figure = paper_.at("fig3_cache_split");
  const auto published = [&](const char* key) { return load == "agent" ? Published(figure.at(key)) : Published(); };
  const std::string t = "cache budgets (Figure 3)";
  cell(t, "a quarter, split evenly", load, "slowdown_pct", published("quarter_budget_even_split_agent"),
       experiment.run(both("quarter budget, even split", 1, 1, million / 8, million / 8)).slowdown_pct);
  cell(t, "a quarter, layer 14 only", load, "slowdown_pct", published("quarter_budget_l14_only_agent"),
       experiment.run(both("quarter budget, layer 14 only", 1, 1, 0, million / 4)).slowdown_pct);
  cell(t, "double, split evenly", load, "slowdown_pct", published("double_budget_even_split_agent"),
       experiment.run(both("double budget, even split", 1, 1, million, million)).slowdown_pct);
}

void Evaluation::sharing(Experiment& experiment, const std::string& load) {
  const Json& values = paper_.at("sharing");
  const auto shared = [](Placement placement) {
    for (auto& [k, layer] : placement.layers) layer.wrappers = {"shared:tenants=4"};
    return placement;
  };
  const auto published = [&](const char* key) { return load == "agent" ? Published(values.at(key)) : Published(); };
  const std::string t = "sharing: four instances on the disks";
  cell(t, "both on 1 disk", load, "slowdown_pct", Published(values.at("uncached_percent").at(load)),
       experiment.run(shared(both("4 instances, both on 1 disk", 1, 1, 0, 0))).slowdown_pct);
  cell(t, "both on 1 disk, cache split evenly", load, "slowdown_pct", published("split_cache_agent_percent"),
       experiment.run(shared(both("4 instances, 1 disk, cache split evenly", 1, 1, million / 2, million / 2))).slowdown_pct);
  cell(
      t, "both on 4 disks, cache split evenly", load, "slowdown_pct", published("four_disks_agent_percent"),
      experiment.run(shared(both("4 instances, 4 disks, cache split evenly", 4, 4, million / 2, million / 2))).slowdown_pct);
}

void Evaluation::remote(Experiment& experiment, const std::string& load) {
  const Json& values = paper_.at("rdma");
  const std::string t = "remote (RDMA)";
  const Outcome out = experiment.run(both("both remote", 1, 1, 0, 0, "rdma"));
  cell(t, "B=128, uncached", load, "slowdown_pct", Published(values.at("B128_B256_percent")), out.slowdown_pct);
  cell(t, "B=128, uncached, layer 1", load, "read_ms", Published(paper_.at("read_time_ms_B128").at("rdma_uncached")),
       out.read_ms.at(1), !real());
}

void Evaluation::page_cache(Experiment& experiment, const std::string& load) {
  const Json& values = paper_.at("page_cache_baseline_percent");
  const std::string t = "page cache";
  // A node's page cache, evenly over two layers and four ranks.
  const auto pages = [](double gib) { return static_cast<std::uint64_t>(gib * (1 << 30) / 8 / 4096); };
  for (const auto& [key, name, gib] :
       {std::tuple{"cap_8GiB", "8 GiB of page cache", 8.0}, {"uncapped_90GiB", "90 GiB of page cache", 90.0}})
    cell(t, name, load, "slowdown_pct", Published(values.at(key).at(load)),
         experiment.run(both(name, 1, 1, 0, 0, "buffered"), pages(gib)).slowdown_pct);
  cell(t, "GPU cache of 1 GB instead, 4 disks", load, "slowdown_pct",
       Published(values.at("slacktier_1GB_gpu_cache").at(load)),
       experiment.run(both("1 GB GPU cache, 4 disks", 4, 4, million / 2, million / 2)).slowdown_pct);
}

// Rows that nobody has asked for in so many tokens are zeros, unread; the paper knew 75 million tokens, of agents only.
void Evaluation::skipping(Experiment& experiment, const std::string& load) {
  if (real() || load != "agent") return;
  const Json& values = paper_.at("lossy_skipping").at("agent_percent");
  const paper::GeneratedSeenSet seen(load, options_.seed, options_.seen_tokens, options_.stop);
  Placement placement = both("cache split evenly, unseen rows skipped", 1, 1, million / 2, million / 2);
  placement.skip_unseen = seen.path();
  const Outcome out = experiment.run(placement);
  configurations_.back().placement["skip_unseen"] = "generated";
  cell("lossy skipping", "both on 1 disk, cache split evenly", load, "slowdown_pct", values.at(0).get<double>(),
       experiment.run(both("lossy skipping: nothing skipped", 1, 1, million / 2, million / 2)).slowdown_pct);
  cell("lossy skipping", "the same, rows never seen skipped", load, "slowdown_pct", values.at(1).get<double>(),
       out.slowdown_pct);
}

}  // namespace slacktier::paper
