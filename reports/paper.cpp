#include "reports/paper.hpp"

#include <cstdint>

#include "reports/embedded/embedded.hpp"

namespace slacktier {
namespace {

// "agent": 6.4, "agent_p99": 33.5 of one row, for both workloads.
std::map<std::string, double> by_workload(const Json& row, const std::string& suffix) {
  std::map<std::string, double> values;
  for (const char* workload : {"agent", "chat"}) values[workload] = row.at(workload + suffix).get<double>();
  return values;
}

}  // namespace

const Json& paper_values() {
  static const Json values = parse_json(embedded_file("paper/paper.json"), "paper/paper.json");
  return values;
}

std::string paper_source() { return paper_values().at("source").get<std::string>(); }

std::vector<PaperRow> paper_rows() {
  std::vector<PaperRow> rows;
  for (const Json& entry : paper_values().at("table2_overhead_percent").at("rows")) {
    PaperRow row;
    row.table = "Table 2";
    row.config = entry.at("config").get<std::string>();
    row.host_gib = entry.at("host_GiB").get<double>();
    if (entry.contains("cache_rows_per_rank")) row.cache_rows_per_rank = entry["cache_rows_per_rank"].get<std::int64_t>();
    row.slowdown_pct = by_workload(entry, "");
    row.p99_ms = by_workload(entry, "_p99");
    rows.push_back(row);
  }
  const PaperBaseline baseline = paper_table2_baseline();
  for (const Json& entry : paper_values().at("table4_ablations_step_ms")) {
    PaperRow row;
    row.table = "Table 4";
    row.config = entry.at("config").get<std::string>();
    row.mean_ms = by_workload(entry, "");
    for (const auto& [workload, mean] : row.mean_ms)
      row.slowdown_pct[workload] = 100 * (mean / baseline.mean_ms.at(workload) - 1);
    rows.push_back(row);
  }
  const Json& page_cache = paper_values().at("page_cache_baseline_percent");
  for (const auto& [key, config] : {std::pair{"cap_8GiB", "page cache, 8 GiB"}, {"uncapped_90GiB", "page cache, no cap"}}) {
    PaperRow row;
    row.table = "page-cache baseline";
    row.config = config;
    row.slowdown_pct = by_workload(page_cache.at(key), "");
    rows.push_back(row);
  }
  return rows;
}

PaperBaseline paper_table2_baseline() {
  const Json& entry = paper_values().at("table2_overhead_percent").at("baseline");
  return {entry.at("host_GiB").get<double>(), by_workload(entry, "_ms"), by_workload(entry, "_p99")};
}

std::optional<PaperRow> paper_row(const std::string& config) {
  for (const PaperRow& row : paper_rows())
    if (row.config == config) return row;
  return {};
}

PaperWindows paper_windows() {
  const Json& entry = paper_values().at("windows_ms").at("v41_B128");
  return {entry.at("step").get<double>(), {{1, entry.at("W1").get<double>()}, {14, entry.at("W14").get<double>()}}};
}

std::vector<double> paper_v41_layer_ms() {
  const Json& profile = paper_values().at("v41_profile_for_table3_ms");
  std::vector<double> layers{profile.at("layer0").get<double>()};
  layers.resize(14, profile.at("layers1_13_each").get<double>());
  layers.resize(40, profile.at("layers14_39_each").get<double>());
  return layers;
}

}  // namespace slacktier
