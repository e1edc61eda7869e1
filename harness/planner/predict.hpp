// What a candidate's reads cost, by the exposure model over drawn steps.
#pragma once

#include "harness/planner.hpp"

namespace slacktier::planner {

// Every quantity that is uncertain, moved by so many half-widths of its 95% interval.
struct Shift {
  double windows = 0, reads = 0, pages = 0, kappa = 0, rare = 0;
};

Prediction predict(const PlanProblem& problem, const Candidate& candidate, const Shift& shift = {});
// Fills lo_ms and hi_ms.
void add_interval(const PlanProblem& problem, const Candidate& candidate, Prediction& prediction);

}  // namespace slacktier::planner
