// Which steps to run, with which delays, until the windows of all wanted layers are known. No device and no clock in here:
// steps and time are asked for, so the same search runs on simulated ones.
//
// First, for every layer and injector, a delay that is longer than the whole step and so certainly shows (its delta gives a
// first guess of the window, and a delta of nothing tells that the hook is not in the graph). Then six delays around the
// guess, from two thresholds below to three above it, in random order over all layers and delays, with steps without delay
// in between, in rounds, until every window is known well enough or time is up. A guess that proves wrong is corrected on
// the way.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probe/control_block.hpp"
#include "probe/estimators.hpp"

namespace slacktier {

// Steps that can be run, each returning its time in ms by the device's clock.
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  virtual std::size_t injectors() const = 0;
  virtual double plain() = 0;  // without hooks
  virtual double hooked(std::size_t injector, std::span<const LayerDelay> delays) = 0;
  // With timestamps where each layer's own work begins, without hooks and with idle ones; reached_ms gets one value a layer
  // of the model. Empty: not to be had.
  virtual std::optional<double> stamped(std::vector<double>& reached_ms) = 0;
  virtual std::optional<double> hooked_stamped(std::size_t injector, std::vector<double>& reached_ms) = 0;
};

struct SearchSettings {
  std::vector<int> layers;  // hooked, ascending
  int model_layers = 0;
  std::vector<double> latency_ms;        // of each injector: from the end of the delay until the layer goes on
  std::vector<double> latency_noise_ms;  // of one step; empty: none
  std::optional<double> threshold_ms;    // a delta above it is a delay; empty: from the noise
  double max_seconds = 60;
  double watchdog_ms = 1000;
  int min_rounds = 3, max_rounds = 24;
  std::uint64_t seed = 1;
  std::function<double()> seconds;             // elapsed
  std::function<bool()> stop;                  // asked between steps; then Interrupted is thrown
  std::function<void(double share)> progress;  // 0 … 1
};

enum class WindowStatus { ok, no_window, noisy, disagree, failed };
const char* to_string(WindowStatus status);

// What one injector says of one layer. Windows are corrected for hooks and latency; knees are as seen in the hooked step.
struct InjectorEstimate {
  HingeFit fit;
  double knee_ms = 0;
  double hooks_ms = 0;  // what idle hooks up to and with this layer's add
  std::optional<double> w_ms, lo_ms, hi_ms, threshold_w_ms;
  std::vector<DelayPoint> points;
  std::size_t steps = 0;
};

struct LayerEstimate {
  int layer = 0;
  WindowStatus status = WindowStatus::failed;
  std::string reason;
  bool usable = true;                       // false: what disagrees lies so far apart that no number can be given
  std::vector<InjectorEstimate> injectors;  // the first one's window is the layer's
  std::optional<double> true_w_ms;          // from timestamps without hooks
};

struct SearchResult {
  std::vector<double> plain, hooked_ms;  // plain: every step in run order; hooked_ms: medians by injector
  double step_ms = 0, noise_ms = 0, threshold_ms = 0;
  std::optional<double> stamps_ms;  // what the timestamps themselves added to a step
  std::vector<LayerEstimate> layers;
  std::optional<Interval> drift_ms;  // of steps without delays, over the whole search
  bool drifted = false;              // more than the threshold, or than a hundredth of the step
  std::string unmet;                 // what had not been reached when time was up
  double seconds = 0;
};

// The noise threshold of a platform: 0.3 ms, 3 standard deviations of a step, or 1% of it, whichever is most (the paper's).
double noise_threshold_ms(double noise_ms, double step_ms);

// Throws CheckFailed for a layer whose delays do not reach the step, UsageError when the watchdog forbids the delays that it
// takes, Interrupted.
SearchResult search_windows(StepRunner& steps, const SearchSettings& settings);

}  // namespace slacktier
