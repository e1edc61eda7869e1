// What each layer does on each rank in a step, for the virtual clock: from passes that are kept, or from passes that go
// along with the clock, because what they do depends on the times of steps before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "harness/sim/layer_pass.hpp"
#include "harness/split_search.hpp"

namespace slacktier {

// i is layer * ranks + rank.
class StepFeed {
 public:
  virtual ~StepFeed() = default;
  virtual std::uint64_t host_bytes(std::size_t i) const = 0;
  // To the step of this number after the warm-up; every step is come to, in order.
  virtual void to(std::uint64_t index) = 0;
  virtual const StepOutcome& outcome(std::size_t i) const = 0;
  // Pages of the step on each of so many disks; valid until to().
  virtual const std::uint32_t* pages_on(std::size_t i, std::uint32_t disks) = 0;
  // What the slowest rank waited at the gates of this step, when its time counts.
  virtual void took(double stalled_ms) = 0;
};

class KeptSteps final : public StepFeed {
 public:
  explicit KeptSteps(std::vector<const PassResult*> passes) : passes_(std::move(passes)) {}
  std::uint64_t host_bytes(std::size_t i) const override { return passes_[i]->host_bytes; }
  void to(std::uint64_t index) override { index_ = index; }
  const StepOutcome& outcome(std::size_t i) const override { return passes_[i]->steps[index_]; }
  const std::uint32_t* pages_on(std::size_t i, std::uint32_t disks) override {
    return &passes_[i]->pages_on.at(disks)[index_ * disks];
  }
  void took(double) override {}

 private:
  std::vector<const PassResult*> passes_;
  std::uint64_t index_ = 0;
};

class SplitSteps final : public StepFeed {
 public:
  // `layers`: the model's layer of each pass. Passes are warm, with `search`'s budget reserved.
  SplitSteps(std::vector<std::unique_ptr<LayerPass>> passes, std::vector<int> layers, std::uint64_t warm_steps,
             SplitSearch& search)
      : passes_(std::move(passes)),
        layers_(std::move(layers)),
        warm_steps_(warm_steps),
        search_(search),
        outcomes_(passes_.size()),
        on_(passes_.size()) {}

  std::uint64_t host_bytes(std::size_t i) const override { return passes_[i]->host_bytes(); }
  void to(std::uint64_t index) override {
    for (std::size_t i = 0; i < passes_.size(); ++i) outcomes_[i] = passes_[i]->step(warm_steps_ + index);
  }
  const StepOutcome& outcome(std::size_t i) const override { return outcomes_[i]; }
  const std::uint32_t* pages_on(std::size_t i, std::uint32_t disks) override {
    on_[i].assign(disks, 0);
    for (const std::uint32_t page : passes_[i]->pages()) ++on_[i][page % disks];
    return on_[i].data();
  }
  void took(double stalled_ms) override {
    if (!search_.step(stalled_ms)) return;
    for (std::size_t i = 0; i < passes_.size(); ++i)
      if (layers_[i] == search_.first() || layers_[i] == search_.second()) passes_[i]->resize(search_.rows(layers_[i]));
  }

 private:
  std::vector<std::unique_ptr<LayerPass>> passes_;
  std::vector<int> layers_;
  std::uint64_t warm_steps_;
  SplitSearch& search_;
  std::vector<StepOutcome> outcomes_;
  std::vector<std::vector<std::uint32_t>> on_;
};

}  // namespace slacktier
