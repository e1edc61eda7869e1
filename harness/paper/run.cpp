#include "harness/paper_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/campaigns/campaigns.hpp"
#include "harness/paper/experiments.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "reports/paper.hpp"

namespace slacktier {
namespace {

using paper::Bench;
using paper::both;
using paper::Experiment;
using paper::Outcome;

constexpr std::uint64_t million = 1'000'000;

// A value, or the ends of a range.
struct Published {
  std::optional<double> lo, hi;
  Published() = default;
  Published(double value) : lo(value), hi(value) {}
  Published(const Json& json) {
    if (json.is_array()) {
      lo = json.at(0).get<double>();
      hi = json.at(1).get<double>();
    } else if (json.is_number()) {
      lo = hi = json.get<double>();
    }
  }
};

class Run {
 public:
  explicit Run(const PaperRunOptions& options) : options_(options), paper_(paper_values()) {
    out_.results.kind = "results";
    out_.results.settings["workloads"] = Json::array();
  }

  PaperRun all() {
    for (const std::string& load : options_.loads) {
      if (!options_.traces.empty() && !options_.traces.contains(load)) continue;
      main_batch(load);
      batches(load);
      no_graph(load);
      qwen(load);
    }
    pairs();
    footprint();
    finish();
    return std::move(out_);
  }

 private:
  bool real() const { return !options_.traces.empty(); }

  void cell(const std::string& table, const std::string& row, const std::string& load, const std::string& quantity,
            Published published, std::optional<double> ours, bool calibrated = false) {
    if (!ours) return;
    if (real()) published = {};
    out_.cells.push_back({table, row, load, quantity, published.lo, published.hi, *ours, calibrated});
  }

  // The step that the paper's baseline takes, and the spread that makes its p99.
  Bench main_bench(const std::string& load) const {
    const PaperBaseline baseline = paper_table2_baseline();
    Bench bench;
    bench.load = load;
    bench.step_ms = baseline.mean_ms.at(load);
    bench.step_jitter = std::log(baseline.p99_ms.at(load) / bench.step_ms) / 2.3263478740408408;
    bench.window1_ms = paper_.at("exposure_model").at("fitted_W1_ms").get<double>();
    bench.window_late_ms = paper_windows().window_ms.at(14);
    return bench;
  }

  void main_batch(const std::string& load) {
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
  std::map<std::string, Outcome> table2(Experiment& experiment, const std::string& load) {
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
  bool controller_fits() {
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

  void table9(Experiment& experiment, const std::string& load, const std::map<std::string, Outcome>& known) {
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

  void table4(Experiment& experiment, const std::string& load) {
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

  void budgets(Experiment& experiment, const std::string& load) {
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

  void sharing(Experiment& experiment, const std::string& load) {
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
         experiment.run(shared(both("4 instances, 1 disk, cache split evenly", 1, 1, million / 2, million / 2)))
             .slowdown_pct);
    cell(t, "both on 4 disks, cache split evenly", load, "slowdown_pct", published("four_disks_agent_percent"),
         experiment.run(shared(both("4 instances, 4 disks, cache split evenly", 4, 4, million / 2, million / 2)))
             .slowdown_pct);
  }

  void remote(Experiment& experiment, const std::string& load) {
    const Json& values = paper_.at("rdma");
    const std::string t = "remote (RDMA)";
    const Outcome out = experiment.run(both("both remote", 1, 1, 0, 0, "rdma"));
    cell(t, "B=128, uncached", load, "slowdown_pct", Published(values.at("B128_B256_percent")), out.slowdown_pct);
    cell(t, "B=128, uncached, layer 1", load, "read_ms", Published(paper_.at("read_time_ms_B128").at("rdma_uncached")),
         out.read_ms.at(1), !real());
  }

  void page_cache(Experiment& experiment, const std::string& load) {
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
  void skipping(Experiment& experiment, const std::string& load) {
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

  // Steps at other batches: 11 ms at 8 sessions and 43 ms at 256 are the ends of the paper's range, of its slower load;
  // linear between them and the step at 128, which is an assumption.
  double step_at(const std::string& load, std::uint32_t sessions) const {
    const PaperBaseline baseline = paper_table2_baseline();
    const Json& range = paper_.at("v41_step_ms_range");
    const double at8 = range.at(0).get<double>(), at128 = baseline.mean_ms.at(load);
    const double at256 =
        range.at(1).get<double>() * at128 / std::max(baseline.mean_ms.at("agent"), baseline.mean_ms.at("chat"));
    if (sessions <= 128) return at8 + (at128 - at8) * (sessions - 8) / 120.0;
    return at128 + (at256 - at128) * (sessions - 128) / 128.0;
  }

  void batches(const std::string& load) {
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
        const Published published =
            sessions == 256 ? Published(figure.at("B256").at(names[i].second).at(load)) : Published();
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

  void remote_at(Experiment& experiment, const std::string& load, std::uint32_t sessions) {
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
  void no_graph(const std::string& load) {
    const Json& values = paper_.at("no_graph");
    Bench bench = main_bench(load);
    bench.step_ms = 0.5 * (values.at("step_ms").at(0).get<double>() + values["step_ms"].at(1).get<double>());
    bench.label = "no graph: ";
    Experiment experiment(bench, options_, configurations_, out_.results.settings);
    cell("no decode graph", "both on 1 disk", load, "slowdown_pct", Published(values.at("nvme_vs_dram_percent")),
         experiment.run(both("both on 1 disk", 1, 1, 0, 0)).slowdown_pct);
  }

  void qwen(const std::string& load) {
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

  // Table 3: two layers delayed at once, whatever the traffic. A delay of X from t = 0 is a device that answers then.
  void pairs() {
    if (real()) return;
    const TableSpec spec = load_table_spec("engram_v41");
    const StepModel model = paper_v41_model();
    const CostModel free;
    for (const Json& row : paper_.at("table3_both_delayed_ms")) {
      ServiceModels services;
      Placement placement = both("delayed", 1, 1, 0, 0);
      placement.layers[14].source = "pread";
      ServiceModel answers;
      answers.latency_us = row.at("X1").get<double>() * 1e3;
      services.add("uring", 1, 1, answers);
      answers.latency_us = row.at("X14").get<double>() * 1e3;
      services.add("pread", 1, 1, answers);
      VirtualClock clock(spec, model, placement, 1, services, free);
      const RankStep one{1, 1, 1, 0, nullptr};
      const double added = clock.step({one, one}).step_us / 1e3 - static_cast<double>(model.step()) / 1e6;
      cell("Table 3", fmt::format("X1 = {} ms, X14 = {} ms", row.at("X1").get<double>(), row.at("X14").get<double>()), "any",
           "slowdown_ms", Published(row.at("measured")), added);
    }
  }

  // Host memory of larger tables: rows where they lie in DRAM, directories of 4 bytes a row where they do not.
  void footprint() {
    if (real()) return;
    const Json& values = paper_.at("footprint_growth_GiB");
    const TableSpec spec = load_table_spec("engram_v41");
    constexpr double gib = 1 << 30;
    double layer[2] = {};
    for (std::size_t l = 0; l < 2; ++l) layer[l] = static_cast<double>(spec.layers[l].rows) / gib;
    const auto dram = [&](std::size_t l, double times) { return times * layer[l] * spec.row_bytes; };
    const auto disk = [&](std::size_t l, double times) { return times * layer[l] * 4; };
    const std::string t = "host memory of larger tables";
    cell(t, "twice the rows, both in DRAM", "any", "host_gib", Published(values.at("2x").at("dram")),
         paper::runtime_gib + dram(0, 2) + dram(1, 2));
    cell(t, "twice the rows, layer 14 on disk", "any", "host_gib", Published(values.at("2x").at("l14_nvme")),
         paper::runtime_gib + dram(0, 2) + disk(1, 2));
    cell(t, "five times the rows, both in DRAM", "any", "host_gib", Published(values.at("5x").at("dram")),
         paper::runtime_gib + dram(0, 5) + dram(1, 5));
    cell(t, "five times the rows, both on disk", "any", "host_gib", Published(values.at("5x").at("full_nvme")),
         paper::runtime_gib + disk(0, 5) + disk(1, 5));
  }

  void finish() {
    Json& settings = out_.results.settings;
    settings["campaign"] = "paper";
    settings["model"] = "DeepSeek-V4.1-Flash";
    settings["table"] = "engram_v41";
    settings["ranks"] = 4;
    settings["measured_ranks"] = {0, 1, 2, 3};
    settings["shard_map"] = "contiguous";
    settings["device"] = "sim";
    settings["seed"] = options_.seed;
    settings["warm_steps"] = options_.warm_steps;
    settings["blocks"] = options_.blocks;
    settings["block_steps"] = options_.block_steps;
    settings["service"] = paper_services().label();
    settings["costs"] = paper_costs().label;
    for (const PaperCell& c : out_.cells) {
      Json json = {{"table", c.table},       {"row", c.row},   {"load", c.load},
                   {"quantity", c.quantity}, {"ours", c.ours}, {"origin", c.calibrated ? "calibrated" : "predicted"}};
      json["paper"] = c.paper_lo ? Json::array({*c.paper_lo, *c.paper_hi}) : Json();
      settings["cells"].push_back(json);
    }
    set_configurations(out_.results, configurations_);
    auto& warnings = out_.results.warnings;
    warnings.push_back({"device_sim",
                        fmt::format("device: sim; times are modelled, nothing was read: {}; {}", paper_services().label(),
                                    paper_costs().label),
                        "/settings/device"});
    warnings.push_back(
        {"windows_assumed", "windows: the paper's 4xH200, scaled to each baseline's step, not this machine", ""});
    if (!controller_left_out_.empty())
      warnings.push_back({"controller_left_out", fmt::format("Table 9: no controller: {}", controller_left_out_), ""});
    if (!real())
      warnings.push_back(
          {"sessions_generated",
           "sessions: generated, made to hit at layer 1 as the paper's did (harness/generator/profile_paper.cpp)",
           "/settings/workloads"});
  }

  const PaperRunOptions& options_;
  const Json& paper_;
  PaperRun out_;
  std::vector<ConfigurationResult> configurations_;
  std::string controller_left_out_;  // why
};

}  // namespace

PaperRun run_paper(const PaperRunOptions& options) { return Run(options).all(); }

}  // namespace slacktier
