#include "harness/step_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>

#include "reports/error.hpp"
#include "reports/paper.hpp"

namespace slacktier {
namespace {

Nanos from_ms(double ms) { return static_cast<Nanos>(std::llround(ms * 1e6)); }

}  // namespace

Nanos StepModel::step() const { return std::accumulate(layer_time.begin(), layer_time.end(), lead_time); }

Nanos StepModel::window(int layer) const {
  return std::accumulate(layer_time.begin(), layer_time.begin() + layer, lead_time);
}

StepModel paper_v41_model() {
  StepModel model;
  model.name = "DeepSeek-V4.1-Flash";
  model.label = "windows: the paper's 4xH200 (B = 128), not this machine";
  for (const double ms : paper_v41_layer_ms()) model.layer_time.push_back(from_ms(ms));
  return model;
}

StepModel uniform_model(int layers, Nanos step) {
  if (layers <= 0 || step <= 0)
    throw InputError(fmt::format("a model of {} layers in {} ns: both must be positive", layers, step));
  StepModel model;
  model.name = fmt::format("{} equal layers", layers);
  // Rounded so that the windows, not the layers, are exact.
  for (int k = 0; k < layers; ++k) model.layer_time.push_back(step * (k + 1) / layers - step * k / layers);
  model.label = fmt::format("windows: assumed, {} equal layers of a step of {} ms", layers, static_cast<double>(step) / 1e6);
  return model;
}

StepModel model_from_windows(const Envelope& windows, const std::vector<int>& layers, std::uint32_t batch) {
  const std::string where = windows.file.empty() ? "windows file" : windows.file;
  const Json* chosen = nullptr;
  std::vector<std::int64_t> batches;
  for (const Json& one : windows.results) {
    batches.push_back(one.at("batch").get<std::int64_t>());
    if (batches.back() == batch) chosen = &one;
  }
  if (!chosen && batches.size() == 1) chosen = &windows.results[0];
  if (!chosen)
    throw InputError(fmt::format("{}: has windows at batch {}, none at {}: probe that batch, or run with --sessions", where,
                                 fmt::join(batches, ", "), batch));
  const Json& results = *chosen;
  const double step_ms = results.at("step_ms").get<double>();

  std::map<int, double> window_ms{{0, 0.0}};
  for (const Json& layer : results.at("layers")) {
    const int k = layer.at("k").get<int>();
    if (layer.at("w_ms").is_number()) {
      window_ms[k] = layer["w_ms"].get<double>();
    } else if (layer.value("status", std::string()) == "no-window") {
      window_ms[k] = 0;  // the step needs its rows at once
    }
  }
  for (const int k : layers)
    if (!window_ms.contains(k))
      throw InputError(fmt::format("{}: results.layers has no window of layer {}, which reads a table: probe it", where, k));
  const int n_layers = results.at("model_layers").get<int>();
  window_ms[n_layers] = step_ms;

  StepModel model;
  if (windows.settings.contains("model") && windows.settings["model"].is_string())
    model.name = windows.settings["model"].get<std::string>();
  model.label = fmt::format("windows: {} (batch {})", where, results.at("batch").get<std::int64_t>());
  model.measured_here = true;
  double previous = window_ms.at(0);
  model.lead_time = from_ms(previous);
  auto after = window_ms.begin();
  for (int k = 1; k <= n_layers; ++k) {
    while (after->first < k) ++after;
    const auto before = after->first == k ? after : std::prev(after);
    double at = after->second;
    if (after->first != k)
      at = before->second + (after->second - before->second) * (k - before->first) / (after->first - before->first);
    if (at < previous)
      throw InputError(fmt::format("{}: the window of layer {} ({} ms) is shorter than that of the layer before it ({} ms)",
                                   where, k, at, previous));
    model.layer_time.push_back(from_ms(at) - from_ms(previous));
    previous = at;
  }
  return model;
}

}  // namespace slacktier
