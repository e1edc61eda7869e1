#include "harness/paper/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/paper.hpp"

namespace slacktier::paper {

Evaluation::Evaluation(const PaperRunOptions& options) : options_(options), paper_(paper_values()) {
  out_.results.kind = "results";
  out_.results.settings["workloads"] = Json::array();
}

PaperRun Evaluation::all() {
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

void Evaluation::cell(const std::string& table, const std::string& row, const std::string& load, const std::string& quantity,
                      Published published, std::optional<double> ours, bool calibrated) {
  if (!ours) return;
  if (real()) published = {};
  out_.cells.push_back({table, row, load, quantity, published.lo, published.hi, *ours, calibrated});
}

// Table 3: two layers delayed at once, whatever the traffic. A delay of X from t = 0 is a device that answers then.
void Evaluation::pairs() {
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
void Evaluation::footprint() {
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

void Evaluation::finish() {
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

}  // namespace slacktier::paper

namespace slacktier {

PaperRun run_paper(const PaperRunOptions& options) { return paper::Evaluation(options).all(); }

}  // namespace slacktier
