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

// Two layers delayed at once, and what the exposure model makes of their single windows. Times in ms.
struct BothDelayed {
  double first_ms = 0, second_ms = 0;  // the delays
  double measured_ms = 0, lo_ms = 0, hi_ms = 0;
  double eq1_ms = 0, sum_ms = 0;  // d1 + d2 of Eq. 1; the sum of what each exceeds its own window by
};
struct BothResult {
  int first_layer = 0, second_layer = 0;
  double step_ms = 0, noise_ms = 0;
  double first_window_ms = 0, second_window_ms = 0;  // as seen in the hooked step, by the same injector
  std::string injector;
  std::vector<BothDelayed> pairs;
  double eq1_rmse_ms = 0, sum_rmse_ms = 0;
};
// `options.layers` names two layers. Of the injectors the first counts.
BothResult measure_both(Device& device, ProbeModel& model, const WindowOptions& options,
                        const std::vector<std::pair<double, double>>& pairs, int steps_a_pair);

// "0,1,14", "all" or "every:3" for a model of so many layers, ascending. Throws UsageError.
std::vector<int> parse_layers(const std::string& text, int model_layers);

}  // namespace slacktier
