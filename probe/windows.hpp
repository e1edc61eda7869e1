// Per-layer prefetch windows of a model on a device, as a result file holds them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/model.hpp"
#include "probe/window_search.hpp"
#include "reports/windows_file.hpp"

namespace slacktier {

struct WindowOptions {
  std::vector<int> layers;                                             // hooked, ascending
  std::vector<std::string> injectors = {"host-node", "device-clock"};  // the first one's windows are the result
  std::optional<double> threshold_ms;
  double max_seconds = 50;
  std::optional<Nanos>
      began;  // when max_seconds began, on monotonic_clock(); empty: when measuring begins, captures included
  double watchdog_ms = 1000;
  std::uint64_t seed = 1;
  std::int64_t batch = 1;
  std::optional<std::int64_t> context;
  std::function<bool()> stop;
  std::function<void(double share)> progress;
};

struct MeasuredWindows {
  WindowsResult result;
  SearchResult search;
  std::vector<Warning> warnings;
};

// Throws UsageError, CheckFailed (hooks that are not in the graph), DeviceError, Interrupted.
MeasuredWindows measure_windows(Device& device, ProbeModel& model, const WindowOptions& options);

// The same of steps that somebody else runs (probe/attached_steps.hpp): one injector, hooks always there.
MeasuredWindows measure_attached(StepRunner& steps, int model_layers, const WindowOptions& options);

// What a search by these options needs to know of device and model. Its time runs from options.began, or from now.
SearchSettings search_settings(Device& device, const ProbeModel& model, const WindowOptions& options);
// options.watchdog_ms as the device's steps take it.
inline Nanos watchdog_of(const WindowOptions& options) { return static_cast<Nanos>(options.watchdog_ms * 1e6); }

// "0,1,14", "all" or "every:3" for a model of so many layers, ascending. Throws UsageError.
std::vector<int> parse_layers(const std::string& text, int model_layers);

}  // namespace slacktier
