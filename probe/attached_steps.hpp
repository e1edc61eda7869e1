// Steps of an engine that runs by itself: the probe writes which layer to delay, waits until every rank has done a step with
// it, and takes the slowest rank's time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "probe/attachment.hpp"
#include "probe/window_search.hpp"

namespace slacktier {

struct AttachOptions {
  std::filesystem::path directory;
  int ranks = 1;
  std::int64_t batch = 1;  // only decode-only steps of this captured batch count
  int delayed_rank = -1;   // delays on this rank alone; -1: on all
  double timeout_s = 60;   // for the ranks to attach, and for each step
  std::function<bool()> stop;
};

class AttachedSteps final : public StepRunner {
 public:
  // Waits until all ranks have attached. Throws EnvironmentError naming the ranks that have not when time is up, UsageError
  // for ranks that differ in their layers or a rank that is not there, Interrupted.
  explicit AttachedSteps(AttachOptions options);
  ~AttachedSteps() override;
  AttachedSteps(const AttachedSteps&) = delete;
  AttachedSteps& operator=(const AttachedSteps&) = delete;

  int layers() const { return layers_; }
  std::size_t injectors() const override { return 1; }
  // Hooks are in every step: the same as hooked() without delays.
  double plain() override { return hooked(0, {}); }
  // One delay at most. Throws EnvironmentError, with the steps that were seen instead, when time is up; CheckFailed when
  // hooks of a step did not run.
  double hooked(std::size_t injector, std::span<const LayerDelay> delays) override;
  std::optional<double> stamped(std::vector<double>&) override { return {}; }
  std::optional<double> hooked_stamped(std::size_t, std::vector<double>&) override { return {}; }

 private:
  struct Rank {
    SharedFile control, samples;
    std::uint64_t seen = 0;
    std::uint64_t steps = 0, mixed = 0;             // since the probe began
    std::map<std::int32_t, std::uint64_t> batches;  // decode-only steps
  };
  void attach();
  void order(std::span<const LayerDelay> delays);
  std::optional<double> look(int index);
  [[noreturn]] void time_out(const std::vector<int>& missing) const;

  const AttachOptions options_;
  std::vector<Rank> ranks_;
  int layers_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace slacktier
