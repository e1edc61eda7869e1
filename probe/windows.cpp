#include "probe/windows.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "probe/device_steps.hpp"

namespace slacktier {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

LayerWindow layer_window(const LayerEstimate& estimate, const WindowOptions& options, double step_ms) {
  const InjectorEstimate& first = estimate.injectors.front();
  LayerWindow layer;
  layer.k = estimate.layer;
  layer.status = to_string(estimate.status);
  layer.reason = estimate.reason;
  layer.hinge_w_ms = first.w_ms;
  layer.threshold_w_ms = first.threshold_w_ms;
  layer.lo_ms = first.lo_ms;
  layer.hi_ms = first.hi_ms;
  layer.true_w_ms = estimate.true_w_ms;
  if (first.fit.slope) layer.slope = first.fit.slope->estimate;
  // What is not known is not given as a number that somebody could use.
  if (estimate.status != WindowStatus::noisy && estimate.status != WindowStatus::failed && estimate.usable)
    layer.w_ms = first.w_ms;
  if (layer.w_ms) layer.share_of_step = share(*layer.w_ms, step_ms);
  for (const DelayPoint& point : first.points)
    layer.points.push_back({point.x_ms, point.delta_ms, static_cast<std::int64_t>(point.n)});
  for (std::size_t i = 0; i < estimate.injectors.size(); ++i) {
    const InjectorEstimate& one = estimate.injectors[i];
    InjectorWindow window{
        options.injectors[i], one.w_ms, one.lo_ms, one.hi_ms, {}, one.hooks_ms, static_cast<std::int64_t>(one.steps)};
    if (one.fit.slope) window.slope = one.fit.slope->estimate;
    layer.injectors.push_back(window);
  }
  return layer;
}

std::optional<WindowFit> fit_of(const WindowsResult& result) {
  std::vector<int> k;
  std::vector<double> w;
  for (const LayerWindow& layer : result.layers)
    if (layer.w_ms && layer.k > 0) k.push_back(layer.k), w.push_back(*layer.w_ms);
  const auto line = window_line(k, w);
  if (!line) return {};
  WindowFit fit;
  fit.ms_per_layer = line->ms_per_layer.estimate;
  fit.lo_ms_per_layer = line->ms_per_layer.lo;
  fit.hi_ms_per_layer = line->ms_per_layer.hi;
  fit.intercept_ms = line->intercept_ms;
  fit.r2 = line->r2;
  if (result.step_ms > 0) fit.normalised_slope = fit.ms_per_layer * result.model_layers / result.step_ms;
  return fit;
}

SearchSettings timed_settings(const WindowOptions& options) {
  SearchSettings settings;
  settings.layers = options.layers;
  settings.threshold_ms = options.threshold_ms;
  settings.max_seconds = options.max_seconds;
  settings.watchdog_ms = options.watchdog_ms;
  settings.seed = options.seed;
  const Nanos begin = options.began.value_or(monotonic_clock().now());
  settings.seconds = [begin] { return static_cast<double>(monotonic_clock().now() - begin) / 1e9; };
  settings.stop = options.stop;
  settings.progress = options.progress;
  return settings;
}

WindowOptions started(WindowOptions options) {
  if (!options.began) options.began = monotonic_clock().now();
  return options;
}

// The result of a search; what its steps were of is for the caller to say.
MeasuredWindows windows_of(const SearchResult& search, const SearchSettings& settings, const WindowOptions& options) {
  MeasuredWindows measured;
  measured.search = search;
  WindowsResult& result = measured.result;
  result.batch = options.batch;
  result.context = options.context;
  result.model_layers = settings.model_layers;
  result.step_ms = search.step_ms;
  result.step_hooked_ms = search.hooked_ms.front();
  result.perturbation_ms = search.hooked_ms.front() - search.step_ms;
  result.noise_ms = search.noise_ms;
  if (search.drift_ms) result.drift_ms = search.drift_ms->estimate;
  result.step = distribution(search.plain);
  for (std::size_t i = 0; i < options.injectors.size(); ++i)
    result.injectors.push_back({options.injectors[i], search.hooked_ms[i],
                                search.step_ms + search.layers.front().injectors.at(i).hooks_ms, settings.latency_ms[i]});
  std::vector<int> noisy, disagree;
  for (const LayerEstimate& estimate : search.layers) {
    result.layers.push_back(layer_window(estimate, options, search.step_ms));
    if (estimate.status == WindowStatus::noisy || estimate.status == WindowStatus::failed) noisy.push_back(estimate.layer);
    if (estimate.status == WindowStatus::disagree) disagree.push_back(estimate.layer);
  }
  result.fit = fit_of(result);

  auto& warnings = measured.warnings;
  if (search.drifted)
    warnings.push_back({"drift",
                        fmt::format("the step changed by {:+.3f} ms ({:+.3f} to {:+.3f}) while it was measured: throttling, "
                                    "or something else runs here",
                                    search.drift_ms->estimate, search.drift_ms->lo, search.drift_ms->hi),
                        "/results/0/drift_ms"});
  if (!noisy.empty())
    warnings.push_back({"noisy",
                        fmt::format("layers {}: the step is too noisy (±{:.3f} ms a step) for windows in the time given; "
                                    "nothing is reported for them",
                                    fmt::join(noisy, ", "), search.noise_ms),
                        ""});
  if (!disagree.empty())
    warnings.push_back({"disagreement",
                        fmt::format("layers {}: estimators, injectors or the slope disagree (see each layer's reason)",
                                    fmt::join(disagree, ", ")),
                        ""});
  if (!search.unmet.empty())
    warnings.push_back(
        {"unmet", fmt::format("not reached in {:.0f} s: {}", options.max_seconds, search.unmet), "/results/0/layers"});
  if (search.noise_ms > 0 && *result.perturbation_ms > 0.05 * search.step_ms)
    warnings.push_back({"perturbation",
                        fmt::format("idle hooks add {:.3f} ms to a step of {:.3f} ms; windows are corrected for that",
                                    *result.perturbation_ms, search.step_ms),
                        "/results/0/perturbation_ms"});
  return measured;
}

}  // namespace

SearchSettings search_settings(Device& device, const ProbeModel& model, const WindowOptions& options) {
  SearchSettings settings = timed_settings(options);
  settings.model_layers = model.layers();
  for (const std::string& injector : options.injectors) {
    const InjectorLatency latency = injector_latency(device, injector);
    settings.latency_ms.push_back(latency.ms);
    settings.latency_noise_ms.push_back(latency.noise_ms);
  }
  return settings;
}

MeasuredWindows measure_windows(Device& device, ProbeModel& model, const WindowOptions& asked) {
  const WindowOptions options = started(asked);
  DeviceSteps steps(device, model, options.layers, options.injectors, watchdog_of(options));
  const SearchSettings settings = search_settings(device, model, options);
  MeasuredWindows measured = windows_of(search_windows(steps, settings), settings, options);
  if (device.facts().backend == "cpu")
    measured.warnings.push_back({"emulated_device",
                                 model.name() == "synthetic"
                                     ? "cpu: layers are timed waits; their windows say nothing of a GPU"
                                     : "cpu: the model runs eagerly on this CPU; its windows say nothing of a GPU",
                                 ""});
  return measured;
}

MeasuredWindows measure_attached(StepRunner& steps, int model_layers, const WindowOptions& asked) {
  WindowOptions options = started(asked);
  options.injectors = {"host-node"};
  SearchSettings settings = timed_settings(options);
  settings.model_layers = model_layers;
  settings.latency_ms = {0};
  MeasuredWindows measured = windows_of(search_windows(steps, settings), settings, options);
  measured.result.step_hooked_ms = measured.result.perturbation_ms = {};
  measured.result.injectors.clear();
  measured.result.reason = "what hooks cost is not known (perturbation_ms): an attached engine's steps always have them";
  measured.warnings.push_back(
      {"attached",
       "an engine's own steps, by the host's clock; to know what hooks cost, compare its speed with and without the plug-in",
       ""});
  return measured;
}

std::vector<int> parse_layers(const std::string& text, int model_layers) {
  std::vector<int> layers;
  const auto number = [&](const std::string& part) {
    int value = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || part.empty() || value < 0)
      throw UsageError(fmt::format("--layers {}: '{}' is no layer; write 0,1,14, all or every:3", text, part));
    return value;
  };
  int every = 0;
  if (text == "all") every = 1;
  if (text.starts_with("every:") && (every = number(text.substr(6))) == 0)
    throw UsageError(fmt::format("--layers {}: every how many? From 1 on", text));
  if (every > 0) {
    for (int k = 0; k < model_layers; k += every) layers.push_back(k);
    return layers;
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const int layer = number(part);
    if (layer >= model_layers)
      throw UsageError(
          fmt::format("--layers {}: there is no layer {}; the model has layers 0 to {}", text, layer, model_layers - 1));
    layers.push_back(layer);
  }
  if (layers.empty()) throw UsageError("--layers: name a layer at least, or all");
  std::sort(layers.begin(), layers.end());
  layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  return layers;
}

}  // namespace slacktier
