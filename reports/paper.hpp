// The published values of the paper whose rule this project tests (reports/paper/paper.json), to be printed beside ours.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/json.hpp"

namespace slacktier {

// The whole file; its "source" and "note" say where the numbers come from.
const Json& paper_values();
std::string paper_source();

// One row of its tables of whole placements at B = 128 (Table 2, Table 4, the page-cache baseline); percents are of the DRAM
// baseline's mean step. Workload is "agent" or "chat".
struct PaperRow {
  std::string table;  // "Table 2"
  std::string config;
  std::optional<double> host_gib;
  std::optional<std::int64_t> cache_rows_per_rank;              // empty: no cache
  std::map<std::string, double> slowdown_pct, mean_ms, p99_ms;  // by workload; what the table has (Table 4's percents are
                                                                // of Table 2's baseline)
};
struct PaperBaseline {
  double host_gib = 0;
  std::map<std::string, double> mean_ms, p99_ms;  // by workload
};
std::vector<PaperRow> paper_rows();
PaperBaseline paper_table2_baseline();
// The row of that name; empty when there is none.
std::optional<PaperRow> paper_row(const std::string& config);

// Windows of DeepSeek-V4.1-Flash at B = 128 on 4 H200, by layer, and the step there.
struct PaperWindows {
  double step_ms = 0;
  std::map<int, double> window_ms;
};
PaperWindows paper_windows();

// The same model's layer times (40 layers), made so that windows and step come out.
std::vector<double> paper_v41_layer_ms();

}  // namespace slacktier
