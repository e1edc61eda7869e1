// What a `windows` file holds, as structures: written by the probe, read by whatever compares or draws windows. Times in ms.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/distribution.hpp"
#include "reports/npy.hpp"
#include "reports/results.hpp"

namespace slacktier {

struct WindowPoint {
  double x_ms = 0, delta_ms = 0;
  std::int64_t n = 0;
};

// What one way of delaying says of a layer.
struct InjectorWindow {
  std::string injector;
  std::optional<double> w_ms, lo_ms, hi_ms, slope;
  std::optional<double> hooks_ms;  // what idle hooks up to and with this layer's add; corrected for
  std::int64_t steps = 0;
};

struct LayerWindow {
  int k = 0;
  std::optional<double> w_ms, lo_ms, hi_ms;
  std::string estimator = "hinge";  // "threshold", "hinge", "timestamps", "assumed"
  std::string status = "ok";        // "ok", "no-window", "noisy", "disagree", "failed", "assumed"
  std::string reason;
  std::optional<double> share_of_step, threshold_w_ms, hinge_w_ms, slope, true_w_ms;
  std::vector<WindowPoint> points;
  std::vector<InjectorWindow> injectors;
};

struct WindowFit {
  double ms_per_layer = 0, intercept_ms = 0;
  std::optional<double> lo_ms_per_layer, hi_ms_per_layer, r2, normalised_slope;
};

// What hooks cost: a step with idle ones; a step, were there no hooks behind the first layer that has one; how long after a
// delay's end the layer goes on.
struct InjectorCost {
  std::string injector;
  double step_hooked_ms = 0, first_hook_ms = 0, latency_ms = 0;
};

struct WindowsResult {
  std::int64_t batch = 1;
  std::optional<std::int64_t> context;
  int model_layers = 1;
  double step_ms = 0;
  std::optional<double> step_hooked_ms, perturbation_ms, noise_ms, drift_ms;
  std::string reason;
  std::optional<Distribution> step;
  std::optional<SampleFile> samples;
  std::vector<InjectorCost> injectors;
  std::optional<WindowFit> fit;
  std::vector<LayerWindow> layers;
};

// All results of a windows envelope. Throws InputError when it is of another kind, or names the field that is wrong.
std::vector<WindowsResult> windows_results(const Envelope& envelope);
void set_windows_results(Envelope& envelope, const std::vector<WindowsResult>& results);

// Windows in ms by layer: "1:0.27,14:9.35", or a windows file (of several batches in it the one measured at `batch`; a
// single other one is used and named in `label`). Throws InputError naming option or file and field; layers of `wanted` that
// have none are an error.
struct Windows {
  std::map<int, double> ms;
  std::string label;
};
Windows parse_windows(const std::string& text, const std::vector<int>& wanted, std::optional<std::uint32_t> batch);

// Of several batches the one measured at `batch`; a single other one counts, too. Throws InputError naming the file and the
// batches that there are.
const WindowsResult& windows_of_batch(const std::vector<WindowsResult>& results, std::optional<std::uint32_t> batch,
                                      const std::string& file);

}  // namespace slacktier
