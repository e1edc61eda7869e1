// What plan prints: the decision first, then the ranked plans, then what would be if.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/plan_input.hpp"
#include "harness/planner.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

// "MOVE: L1 dram; L14 uring: mean +0.10% [-0.55, +0.78] of at most 1%, …; frees 94.4 GiB of host memory; layer 14 binds …"
std::string decision_line(const PlanInput& input, const PlanOutcome& outcome);

// `prefill_compute_ms`: what a prefill chunk takes without reads; empty: unknown.
Table ranked_table(const PlanInput& input, const PlanOutcome& outcome, std::optional<double> prefill_compute_ms);

// Larger tables, other batches, more tenants, more tokens a step, a single stream: each planned anew. A case whose files say
// nothing of it (no misses that could be scaled) is left out with a note.
Table what_if_table(const PlanSources& sources, const PlanSettings& settings);

// The chosen plan as slacktier-harness run --placement reads it. `name` stands in the results.
Envelope placement_envelope(const PlanInput& input, const PlanOutcome& outcome);

}  // namespace slacktier
