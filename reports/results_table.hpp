// The tables that a `results` file is shown as.
#pragma once

#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

// One row a configuration and workload, within 120 columns: mean, p50 and p99 step, slowdown with its 95% interval,
// Mann-Whitney p, host memory, the slowest rank's hit rates, pages a step, mismatches, the paper's slowdown. Head: settings
// that matter and all warnings.
Table overhead_table(const Envelope& results);
// One row a configuration, layer and rank: lookups, hit and reuse rates, pages, P(step has a miss), resolve, s, T_k, gate,
// stall, status.
Table layer_table(const Envelope& results);
// Prefill by chunk, layer and rank; no rows where none was read.
Table prefill_table(const Envelope& results);
// The overhead table with everything in it, for Markdown, CSV and JSON.
Table full_table(const Envelope& results);

}  // namespace slacktier
