// A model's steps on a device, as a window search runs them: captured once each, without hooks, with idle hooks, with
// timestamps.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/control_block.hpp"
#include "probe/injector.hpp"
#include "probe/model.hpp"
#include "probe/window_search.hpp"

namespace slacktier {

class DeviceSteps final : public StepRunner {
 public:
  // Captures all of them. `layers`: hooked, ascending. Throws UsageError for a layer that the model does not have,
  // CheckFailed when hooks did not enter a graph: a count of calls, operations or host functions is not what it must be.
  DeviceSteps(Device& device, ProbeModel& model, std::vector<int> layers, const std::vector<std::string>& injectors,
              Nanos watchdog);

  std::size_t injectors() const override { return injectors_.size(); }
  double plain() override { return run(plain_, {}, 0); }
  double hooked(std::size_t injector, std::span<const LayerDelay> delays) override;
  std::optional<double> stamped(std::vector<double>& reached_ms) override;
  std::optional<double> hooked_stamped(std::size_t injector, std::vector<double>& reached_ms) override;

 private:
  struct Captured {
    std::unique_ptr<ControlBlock> control;
    std::unique_ptr<InjectingHooks> hooks;
    std::unique_ptr<CapturedStep> step;
  };
  Captured capture(std::vector<int> hooked, Injector* injector, bool stamps);
  double run(Captured& captured, std::span<const LayerDelay> delays, std::size_t host_functions);
  double run_stamped(Captured& captured, std::size_t host_functions, std::vector<double>& reached_ms);

  Device& device_;
  ProbeModel& model_;
  const std::vector<int> layers_;
  const Nanos watchdog_;
  std::vector<std::unique_ptr<Injector>> injectors_;
  Captured plain_, stamped_;
  std::vector<Captured> hooked_, hooked_stamped_;  // by injector
};

// How long after the end of a delay the layer's own work goes on: median over steps of nothing but one hook, in ms. With a
// GPU's host nodes some microseconds, on the cpu device what a thread takes to wake, which differs from step to step.
struct InjectorLatency {
  double ms = 0, noise_ms = 0;  // robust standard deviation of one step
};
InjectorLatency injector_latency(Device& device, const std::string& injector);

}  // namespace slacktier
