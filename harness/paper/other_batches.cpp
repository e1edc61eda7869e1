#include "harness/paper/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "harness/campaigns/campaigns.hpp"
#include "platforms/error.hpp"
#include "reports/paper.hpp"

namespace slacktier::paper {

// Steps at other batches: 11 ms at 8 sessions and 43 ms at 256 are the ends of the paper's range, of its slower load;
// linear between them and the step at 128, which is an assumption.
double Evaluation::step_at(const std::string& load, std::uint32_t sessions) const {
  const PaperBaseline baseline = paper_table2_baseline();
  const Json& range = paper_.at("v41_step_ms_range");
  const double at8 = range.at(0).get<double>(), at128 = baseline.mean_ms.at(load);
  const double at256 =
      range.at(1).get<double>() * at128 / std::max(baseline.mean_ms.at("agent"), baseline.mean_ms.at("chat"));
  if (sessions <= 128) return at8 + (at128 - at8) * (sessions - 8) / 120.0;
  return at128 + (at256 - at128) * (sessions - 128) / 128.0;
}

void Evaluation::batches(const std::string& load) {
  const Json& figure = paper_.at("fig5_load");
  const std::string t = "Figure 5";
  const std::vector<std::pair<const char*, const char*>> names = {
      {"L14 only", "l14_only_cache"}, {"even split", "even_split"}, {"4 disks, split", "four_disks_split"}};
  std::map<std::string, PlotSeries> series;
  for (const Json& b : figure.at("sessions")) {
    const auto sessions = b.get<std::uint32_t>();
    Bench bench = main_bench(load);
    bench.sessions = sessions;
    bench.step_ms = step_at(load, sessions);
    bench.label = fmt::format("B={}: ", sessions);
    std::unique_ptr<Experiment> made;
    try {
      made = std::make_unique<Experiment>(bench, options_, configurations_, out_.results.settings);
    } catch (const UsageError& error) {
      // A file may have sessions enough for the main batch only.
      if (!real() || sessions <= 128) throw;
      out_.results.warnings.push_back({"batch_left_out", fmt::format("B={} left out: {}", sessions, error.what()), ""});
      continue;
    }
    Experiment& experiment = *made;
    const std::string at = fmt::format("B={}", sessions);
    const Placement placements[] = {both("L14-only cache", 1, 1, 0, million),
                                    both("even split", 1, 1, million / 2, million / 2),
                                    both("4 disks, split", 4, 4, million / 2, million / 2)};
    for (std::size_t i = 0; i < names.size(); ++i) {
      const Outcome out = experiment.run(placements[i]);
      const Published published = sessions == 256 ? Published(figure.at("B256").at(names[i].second).at(load)) : Published();
      cell(t, at + ", " + names[i].first, load, "slowdown_pct", published, out.slowdown_pct);
      if (sessions == 8)
        cell(t, at + ", " + names[i].first, load, "slowdown_ms", Published(figure.at("B8_added_ms")), out.slowdown_ms);
      series[names[i].first].points.push_back({static_cast<double>(sessions), out.slowdown_pct, {}, {}});
    }
    const double within = figure.at("L1_DRAM_L14_disk_within_percent").get<double>();
    Published near_zero(within);
    near_zero.lo = -within;
    cell(t, at + ", L1 DRAM, L14 on 1 disk", load, "slowdown_pct", near_zero,
         experiment.run(v41_placement("L1 DRAM, L14 on 1 disk", LayerPlacement(), on_disks(1, 1, 0))).slowdown_pct);
    if (sessions == 8 || sessions == 256) remote_at(experiment, load, sessions);
  }
  Plot& plot = out_.figures["figure5-" + load + ".svg"];
  plot.title = fmt::format("Slowdown against concurrent sessions ({}, virtual clock)", load);
  plot.x_label = "sessions";
  plot.y_label = "slowdown in %";
  for (auto& [name, one] : series) {
    one.label = name;
    plot.series.push_back(one);
  }
}

void Evaluation::remote_at(Experiment& experiment, const std::string& load, std::uint32_t sessions) {
  const Json& values = paper_.at("rdma");
  const std::string t = "remote (RDMA)", at = fmt::format("B={}, ", sessions);
  const bool few = sessions == 8;
  cell(t, at + "uncached", load, "slowdown_pct",
       few ? Published(values.at("B8_uncached_percent").at(load)) : Published(values.at("B128_B256_percent")),
       experiment.run(both("both remote", 1, 1, 0, 0, "rdma")).slowdown_pct);
  if (few)
    cell(t, at + "cache split evenly", load, "slowdown_pct", Published(values.at("B8_cached_percent").at(load)),
         experiment.run(both("both remote, cache split evenly", 1, 1, million / 2, million / 2, "rdma")).slowdown_pct);
}

// Without decode graphs a step takes so long that every window holds.
void Evaluation::no_graph(const std::string& load) {
  const Json& values = paper_.at("no_graph");
  Bench bench = main_bench(load);
  bench.step_ms = 0.5 * (values.at("step_ms").at(0).get<double>() + values["step_ms"].at(1).get<double>());
  bench.label = "no graph: ";
  Experiment experiment(bench, options_, configurations_, out_.results.settings);
  cell("no decode graph", "both on 1 disk", load, "slowdown_pct", Published(values.at("nvme_vs_dram_percent")),
       experiment.run(both("both on 1 disk", 1, 1, 0, 0)).slowdown_pct);
}

void Evaluation::qwen(const std::string& load) {
  if (real()) return;  // its vocabulary is another one
  const Json& values = paper_.at("table7_qwen_percent");
  Bench bench = main_bench(load);
  bench.table = "qwen38_ple";
  bench.step_ms = values.at("baseline_ms").at(load).get<double>();
  bench.window1_ms = paper_.at("windows_ms").at("qwen38").at("W1").get<double>();
  bench.window_late_ms = paper_.at("windows_ms").at("qwen38").at("W_last").get<double>();
  bench.label = "Qwen: ";
  Experiment experiment(bench, options_, configurations_, out_.results.settings);
  const std::string t = "Table 7 (Qwen)";
  cell(t, "host-DRAM table", load, "step_ms", bench.step_ms, experiment.baseline().step_ms, true);
  for (const Json& row : values.at("rows")) {
    const std::string name = row.at("config").get<std::string>();
    Placement placement;
    placement.name = name;
    placement.layers[1] = on_disks(name.starts_with("4") ? 4 : 1, name.starts_with("4") ? 4 : 1,
                                   name.find("no cache") == std::string::npos ? million : 0);
    const Outcome out = experiment.run(placement);
    cell(t, name, load, "slowdown_pct", Published(row.at(load)), out.slowdown_pct);
    if (name == "1 disk, 1M-row cache")
      cell(t, name, load, "l1_hit", values.at("cache_hit_percent").at(load).get<double>() / 100, out.hit.at(1));
  }
}

}  // namespace slacktier::paper
