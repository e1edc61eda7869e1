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

// One row of its Table 2 at B = 128; percents are of the DRAM baseline's mean step. Workload is "agent" or "chat".
struct PaperRow {
  std::string config;
  double host_gib = 0;
  std::optional<std::int64_t> cache_rows_per_rank;     // empty: no cache
  std::map<std::string, double> slowdown_pct, p99_ms;  // by workload
};
struct PaperBaseline {
  double host_gib = 0;
  std::map<std::string, double> mean_ms, p99_ms;  // by workload
};
std::vector<PaperRow> paper_table2();
PaperBaseline paper_table2_baseline();
// The row of that name; empty when there is none.
std::optional<PaperRow> paper_table2_row(const std::string& config);

// Windows of DeepSeek-V4.1-Flash at B = 128 on 4 H200, by layer, and the step there.
struct PaperWindows {
  double step_ms = 0;
  std::map<int, double> window_ms;
};
PaperWindows paper_windows();

// The same model's layer times (40 layers), made so that windows and step come out.
std::vector<double> paper_v41_layer_ms();

}  // namespace slacktier
