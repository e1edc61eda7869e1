#include "harness/split_controller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "platforms/error.hpp"
#include "reports/json.hpp"

namespace slacktier {

SplitController::SplitController(SplitControllerOptions options) : options_(options) {
  const bool share = options.first >= 0 && options.first <= 1;
  const bool steps = options.step > 0 && options.step <= 1 && options.least_step > 0 && options.least_step <= options.step;
  if (!share || !steps || !(options.noise_ms >= 0) || !std::isfinite(options.noise_ms))
    throw UsageError(
        fmt::format("split controller: first {}, step {}, least step {}, noise {} ms: shares lie between 0 and 1, "
                    "steps are positive",
                    options.first, options.step, options.least_step, options.noise_ms));
  best_ = trying_ = options.first;
  step_ = options.step;
}

void SplitController::next_try() {
  // A try that would leave 0 … 1 ends at the border; one that cannot move at all counts as failed.
  while (!holding_) {
    trying_ = std::clamp(best_ + direction_ * step_, 0.0, 1.0);
    if (trying_ != best_) return;
    direction_ = -direction_;
    if (++failures_ < 2) continue;
    failures_ = 0;
    step_ /= 2;
    if (step_ < options_.least_step) holding_ = true;
  }
  trying_ = best_;
}

void SplitController::observe(double step_ms) {
  if (!std::isfinite(step_ms)) throw UsageError("split controller: a block's time is no number");
  if (!known_) {
    known_ = true;
    best_ms_ = step_ms;
    next_try();
    return;
  }
  if (holding_) {
    if (step_ms <= best_ms_ + 3 * options_.noise_ms) {
      best_ms_ = std::min(best_ms_, step_ms);
      return;
    }
    holding_ = false;
    best_ms_ = step_ms;
    step_ = options_.step;
    failures_ = 0;
    next_try();
    return;
  }
  if (step_ms < best_ms_ - options_.noise_ms) {
    best_ = trying_;
    best_ms_ = step_ms;
    failures_ = 0;
  } else {
    direction_ = -direction_;
    if (++failures_ == 2) {
      failures_ = 0;
      step_ /= 2;
      if (step_ < options_.least_step) holding_ = true;
    }
  }
  next_try();
}

std::uint64_t split_rows(double share, std::uint64_t rows_per_rank) {
  return static_cast<std::uint64_t>(std::llround(std::clamp(share, 0.0, 1.0) * static_cast<double>(rows_per_rank)));
}

std::string split_control_file(int first, int second, double share, std::uint64_t rows_per_rank) {
  const std::uint64_t rows = split_rows(share, rows_per_rank);
  Json file;
  file["schema"] = "slacktier/control/1.0";
  file["results"]["layers"][std::to_string(first)]["cache_rows_per_rank"] = rows;
  file["results"]["layers"][std::to_string(second)]["cache_rows_per_rank"] = rows_per_rank - rows;
  return file.dump(2) + "\n";
}

}  // namespace slacktier
