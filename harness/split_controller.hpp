// The online controller: finds the share f of the cache that the first layer gets while the tier serves, by hill climbing on
// what steps take. Pure: the caller measures, and carries f out through a control file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace slacktier {

struct SplitControllerOptions {
  double first = 0.5;  // f to begin with
  double step = 0.25;  // of f, between two tries; halved when neither side is better
  double least_step = 1.0 / 32;
  double noise_ms = 0.02;  // a difference below this is none
};

// One observation is the mean of enough steps (a block) with share() in effect and caches settled. The controller stays
// where a try is not better by more than the noise, tries the other side, then halves its step; at the least step it holds
// until the holding point itself becomes slower than it was by more than three times the noise (the traffic changed), and
// then climbs again from the full step.
class SplitController {
 public:
  // Throws UsageError when options are outside 0 … 1 or not positive.
  explicit SplitController(SplitControllerOptions options = {});

  double share() const { return trying_; }  // f to run with next
  double best() const { return best_; }
  bool holding() const { return holding_; }
  // What a block took with share(). Throws UsageError for a time that is not finite.
  void observe(double step_ms);

 private:
  void next_try();

  SplitControllerOptions options_;
  double best_ = 0.5, best_ms_ = 0, trying_ = 0.5, step_ = 0.25;
  int direction_ = 1, failures_ = 0;
  bool known_ = false, holding_ = false;
};

// Rows of `rows_per_rank` that the first layer has at share f.
std::uint64_t split_rows(double share, std::uint64_t rows_per_rank);
// The control file that gives `first` the share f of `rows_per_rank` and `second` the rest.
std::string split_control_file(int first, int second, double share, std::uint64_t rows_per_rank);

}  // namespace slacktier
