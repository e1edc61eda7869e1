// The paper's whole evaluation on the virtual clock: its tables and figures, value beside value.
//
// A cell is `calibrated` when its value entered the model (a baseline's step, the read times a disk's model is fitted to,
// the hit rates that the traffic is made for), else `predicted`. Only predicted cells say anything about the model, and only
// they count in an error.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/plot.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

struct PaperRunOptions {
  std::map<std::string, std::vector<std::string>>
      traces;                                       // real sessions for "agent" and "chat"; empty: the paper's traffic
  std::set<std::string> loads = {"agent", "chat"};  // those to run
  std::string token_map;
  std::uint64_t seed = 1;
  std::uint64_t warm_steps = 1200;
  std::uint32_t blocks = 10, block_steps = 70;  // 700 steps support a p99
  std::uint64_t seen_tokens = 4'000'000;        // that lossy skipping has seen
  bool quiet = false;
  std::function<bool()> stop;
};

struct PaperCell {
  std::string table, row, load, quantity;    // "Table 2", "both on 1 disk", "agent", "slowdown_pct"
  std::optional<double> paper_lo, paper_hi;  // equal, or the ends of a range; empty: the paper has no value, or is left out
  double ours = 0;
  bool calibrated = false;

  // How far outside the paper's value or range; empty without one.
  std::optional<double> off() const;
};

struct PaperRun {
  Envelope results;  // kind results: every configuration; the cells in its settings
  std::vector<PaperCell> cells;
  std::map<std::string, Plot> figures;  // by file name: "figure3.svg"
};

// Throws UsageError for sessions that are too few, and Interrupted.
PaperRun run_paper(const PaperRunOptions& options);

// One table for each of the paper's, in its order.
std::vector<Table> paper_tables(const PaperRun& run);
// Root mean square of off() over the predicted cells of one quantity; empty without any.
std::optional<double> predicted_rmse(const std::vector<PaperCell>& cells, const std::string& quantity);

}  // namespace slacktier
