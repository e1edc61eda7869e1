#include "probe/device_steps.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "probe/estimators.hpp"

namespace slacktier {

DeviceSteps::DeviceSteps(Device& device, ProbeModel& model, std::vector<int> layers,
                         const std::vector<std::string>& injectors, Nanos watchdog)
    : device_(device), model_(model), layers_(std::move(layers)), watchdog_(watchdog) {
  for (const int layer : layers_)
    if (layer < 0 || layer >= model.layers())
      throw UsageError(fmt::format("layer {}: {} has layers 0 to {}", layer, model.name(), model.layers() - 1));
  if (layers_.empty()) throw UsageError("no layer to probe");
  plain_ = capture({}, nullptr, false);
  stamped_ = capture({}, nullptr, true);
  for (const std::string& name : injectors) {
    injectors_.push_back(make_injector(name, device));
    hooked_.push_back(capture(layers_, injectors_.back().get(), false));
    hooked_stamped_.push_back(capture(layers_, injectors_.back().get(), true));
  }
}

DeviceSteps::Captured DeviceSteps::capture(std::vector<int> hooked, Injector* injector, bool stamps) {
  Captured captured;
  const std::size_t hooks = hooked.size();
  captured.control = std::make_unique<ControlBlock>(device_, model_.layers(), std::move(hooked), watchdog_);
  captured.hooks = std::make_unique<InjectingHooks>(*captured.control, injector, stamps);
  captured.step = model_.capture(*captured.hooks);
  captured.hooks->check_calls();
  if (injector == nullptr) return captured;
  const CapturedStep& without = stamps ? *stamped_.step : *plain_.step;
  const auto check = [&](const char* what, std::optional<std::size_t> plain, std::optional<std::size_t> with,
                         std::size_t added) {
    if (!plain || !with || *with == *plain + added) return;
    throw CheckFailed(
        fmt::format("hooks did not enter the graph: {} hooks add {} {}, the graph has {} with them and {} without", hooks,
                    added, what, *with, *plain));
  };
  check("host functions", without.host_functions(), captured.step->host_functions(), injector->host_functions(hooks));
  check("operations", without.operations(), captured.step->operations(), injector->operations(hooks));
  return captured;
}

double DeviceSteps::run(Captured& captured, std::span<const LayerDelay> delays, std::size_t host_functions) {
  captured.control->set(delays);
  captured.step->replay();
  if (const std::uint32_t held = captured.control->held(); held != host_functions)
    throw CheckFailed(
        fmt::format("hooks did not run in a replay: {} of {} host functions were called", held, host_functions));
  return captured.control->step_ms();
}

double DeviceSteps::hooked(std::size_t injector, std::span<const LayerDelay> delays) {
  return run(hooked_.at(injector), delays, injectors_[injector]->host_functions(layers_.size()));
}

double DeviceSteps::run_stamped(Captured& captured, std::size_t host_functions, std::vector<double>& reached_ms) {
  const double step = run(captured, {}, host_functions);
  reached_ms.clear();
  for (int k = 0; k < model_.layers(); ++k) reached_ms.push_back(captured.control->reached_ms(k));
  return step;
}

std::optional<double> DeviceSteps::stamped(std::vector<double>& reached_ms) { return run_stamped(stamped_, 0, reached_ms); }

std::optional<double> DeviceSteps::hooked_stamped(std::size_t injector, std::vector<double>& reached_ms) {
  return run_stamped(hooked_stamped_.at(injector), injectors_[injector]->host_functions(layers_.size()), reached_ms);
}

InjectorLatency injector_latency(Device& device, const std::string& injector) {
  constexpr double delay_ms = 1;
  constexpr int steps = 40;
  SyntheticModel nothing(device, {0}, "");
  DeviceSteps once(device, nothing, {0}, {injector}, 1'000'000'000);
  const LayerDelay delay{0, delay_ms};
  std::vector<double> late;
  once.hooked(0, {});
  for (int i = 0; i < steps; ++i) {
    const double took = once.hooked(0, {&delay, 1});
    if (i >= steps / 10) late.push_back(took - delay_ms);
  }
  return {median(late), robust_deviation(late)};
}

}  // namespace slacktier
