// The online controller at work on one placement of a run, live or on the virtual clock: what it is told of the steps, and
// which rows each layer's cache has next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/placement.hpp"
#include "harness/split_controller.hpp"

namespace slacktier {

struct SplitSearchOptions {
  std::uint32_t settle_steps = 10;    // after a change, until caches are looked at again
  std::uint32_t observed_steps = 20;  // whose mean is one observation
  double noise_ms = 0.02;             // a difference below this is none
};

// The same placement with room in both caches for all rows of both, as a running tier needs it. Throws UsageError naming the
// placement unless it reads just two layers in pages, with cached rows that a policy moves.
Placement with_room_to_split(const Placement& placement);

// The first layer starts with the share of the rows that the placement gives it. What is minimised is what a step waits at
// its layers' gates: the share moves nothing else, and a step's compute is noise of its own.
class SplitSearch {
 public:
  // Throws as with_room_to_split.
  explicit SplitSearch(const Placement& placement, const SplitSearchOptions& options = {});

  // One step with the rows in effect. True: rows() are others from the next step on.
  bool step(double stalled_ms);
  // Cache rows per rank of a layer of the model: of the two layers that read.
  std::uint64_t rows(int k) const;
  int first() const { return first_; }
  int second() const { return second_; }
  std::uint64_t budget() const { return budget_; }
  // The control file that says rows().
  std::string control_file() const { return split_control_file(first_, second_, controller_.share(), budget_); }

  // {"layers", "rows_per_rank", "share", "holding", "observations": [{"step", "share", "stall_ms"}]}; `step`: steps seen by
  // then.
  Json describe() const;

 private:
  struct Observation {
    std::uint64_t step = 0;
    double share = 0, stall_ms = 0;
  };
  SplitSearchOptions options_;
  int first_ = 0, second_ = 0;
  std::uint64_t budget_ = 0;
  SplitController controller_;
  std::vector<Observation> observations_;
  std::uint64_t steps_ = 0;
  std::uint32_t settling_ = 0, observed_ = 0;
  double sum_ms_ = 0;
};

}  // namespace slacktier
