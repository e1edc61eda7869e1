#include "reports/windows_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>

#include "reports/by_layer.hpp"
#include "reports/error.hpp"
#include "reports/field_reader.hpp"

namespace slacktier {
namespace {

template <class T>
std::optional<T> maybe(const FieldReader& in, const char* key) {
  return in.has(key) ? in.maybe<T>(key) : std::optional<T>();
}

Json write(const LayerWindow& layer) {
  Json json = {{"k", layer.k},
               {"w_ms", or_null(layer.w_ms)},
               {"lo_ms", or_null(layer.lo_ms)},
               {"hi_ms", or_null(layer.hi_ms)},
               {"estimator", layer.estimator},
               {"status", layer.status},
               {"share_of_step", or_null(layer.share_of_step)},
               {"threshold_w_ms", or_null(layer.threshold_w_ms)},
               {"hinge_w_ms", or_null(layer.hinge_w_ms)},
               {"slope", or_null(layer.slope)},
               {"true_w_ms", or_null(layer.true_w_ms)}};
  if (!layer.reason.empty()) json["reason"] = layer.reason;
  json["points"] = Json::array();
  for (const WindowPoint& point : layer.points)
    json["points"].push_back({{"x_ms", point.x_ms}, {"delta_ms", point.delta_ms}, {"n", point.n}});
  json["injectors"] = Json::array();
  for (const InjectorWindow& one : layer.injectors)
    json["injectors"].push_back({{"injector", one.injector},
                                 {"w_ms", or_null(one.w_ms)},
                                 {"lo_ms", or_null(one.lo_ms)},
                                 {"hi_ms", or_null(one.hi_ms)},
                                 {"slope", or_null(one.slope)},
                                 {"hooks_ms", or_null(one.hooks_ms)},
                                 {"steps", one.steps}});
  return json;
}

LayerWindow read_layer(const FieldReader& in) {
  LayerWindow layer;
  layer.k = in.get<int>("k");
  layer.w_ms = in.maybe<double>("w_ms");
  layer.lo_ms = in.maybe<double>("lo_ms");
  layer.hi_ms = in.maybe<double>("hi_ms");
  layer.estimator = in.get<std::string>("estimator");
  layer.status = in.get<std::string>("status");
  layer.reason = in.reason();
  layer.share_of_step = maybe<double>(in, "share_of_step");
  layer.threshold_w_ms = maybe<double>(in, "threshold_w_ms");
  layer.hinge_w_ms = maybe<double>(in, "hinge_w_ms");
  layer.slope = maybe<double>(in, "slope");
  layer.true_w_ms = maybe<double>(in, "true_w_ms");
  if (in.has("points"))
    for (const FieldReader& point : in.objects("points"))
      layer.points.push_back({point.get<double>("x_ms"), point.get<double>("delta_ms"), point.get<std::int64_t>("n")});
  if (in.has("injectors"))
    for (const FieldReader& one : in.objects("injectors"))
      layer.injectors.push_back({one.get<std::string>("injector"), one.maybe<double>("w_ms"), one.maybe<double>("lo_ms"),
                                 one.maybe<double>("hi_ms"), one.maybe<double>("slope"), maybe<double>(one, "hooks_ms"),
                                 one.get<std::int64_t>("steps")});
  return layer;
}

Json write(const WindowsResult& result) {
  Json json = {{"batch", result.batch},
               {"context", or_null(result.context)},
               {"model_layers", result.model_layers},
               {"step_ms", result.step_ms},
               {"step_hooked_ms", or_null(result.step_hooked_ms)},
               {"perturbation_ms", or_null(result.perturbation_ms)},
               {"noise_ms", or_null(result.noise_ms)},
               {"drift_ms", or_null(result.drift_ms)}};
  if (!result.reason.empty()) json["reason"] = result.reason;
  if (result.step) json["step"] = to_json(*result.step);
  if (result.samples) json["samples"] = {{"file", result.samples->file}, {"sha256", result.samples->sha256}};
  json["injectors"] = Json::array();
  for (const InjectorCost& cost : result.injectors)
    json["injectors"].push_back({{"injector", cost.injector},
                                 {"step_hooked_ms", cost.step_hooked_ms},
                                 {"first_hook_ms", cost.first_hook_ms},
                                 {"latency_ms", cost.latency_ms}});
  if (const auto& fit = result.fit)
    json["fit"] = {{"ms_per_layer", fit->ms_per_layer},
                   {"lo_ms_per_layer", or_null(fit->lo_ms_per_layer)},
                   {"hi_ms_per_layer", or_null(fit->hi_ms_per_layer)},
                   {"intercept_ms", fit->intercept_ms},
                   {"r2", or_null(fit->r2)},
                   {"normalised_slope", or_null(fit->normalised_slope)}};
  json["layers"] = Json::array();
  for (const LayerWindow& layer : result.layers) json["layers"].push_back(write(layer));
  return json;
}

WindowsResult read_result(const FieldReader& in) {
  WindowsResult result;
  result.batch = in.get<std::int64_t>("batch");
  result.context = in.maybe<std::int64_t>("context");
  result.model_layers = in.get<int>("model_layers");
  result.step_ms = in.get<double>("step_ms");
  result.step_hooked_ms = maybe<double>(in, "step_hooked_ms");
  result.perturbation_ms = maybe<double>(in, "perturbation_ms");
  result.noise_ms = maybe<double>(in, "noise_ms");
  result.drift_ms = maybe<double>(in, "drift_ms");
  result.reason = in.reason();
  if (in.has("step")) result.step = distribution_from(in.object("step"));
  if (in.has("samples")) {
    const FieldReader samples = in.object("samples");
    result.samples = SampleFile{samples.get<std::string>("file"), samples.get<std::string>("sha256")};
  }
  if (in.has("injectors"))
    for (const FieldReader& cost : in.objects("injectors"))
      result.injectors.push_back({cost.get<std::string>("injector"), cost.get<double>("step_hooked_ms"),
                                  cost.get<double>("first_hook_ms"), cost.get<double>("latency_ms")});
  if (in.has("fit")) {
    const FieldReader fit = in.object("fit");
    result.fit = WindowFit{
        fit.get<double>("ms_per_layer"),      fit.get<double>("intercept_ms"), fit.maybe<double>("lo_ms_per_layer"),
        fit.maybe<double>("hi_ms_per_layer"), fit.maybe<double>("r2"),         fit.maybe<double>("normalised_slope")};
  }
  for (const FieldReader& layer : in.objects("layers")) result.layers.push_back(read_layer(layer));
  return result;
}

}  // namespace

std::vector<WindowsResult> windows_results(const Envelope& envelope) {
  const std::string where = envelope.file.empty() ? "windows file" : envelope.file;
  if (envelope.kind != "windows")
    throw InputError(fmt::format("{}: is a '{}' file; a 'windows' file is needed here", where, envelope.kind));
  std::vector<WindowsResult> results;
  for (std::size_t i = 0; i < envelope.results.size(); ++i)
    results.push_back(read_result(FieldReader(envelope.results[i], fmt::format("{}: /results/{}", where, i))));
  return results;
}

void set_windows_results(Envelope& envelope, const std::vector<WindowsResult>& results) {
  envelope.kind = "windows";
  envelope.results = Json::array();
  for (const WindowsResult& result : results) envelope.results.push_back(write(result));
}

const WindowsResult& windows_of_batch(const std::vector<WindowsResult>& results, std::optional<std::uint32_t> batch,
                                      const std::string& file) {
  std::vector<std::int64_t> batches;
  for (const WindowsResult& one : results) {
    if (batch && one.batch == *batch) return one;
    batches.push_back(one.batch);
  }
  if (results.size() != 1)
    throw InputError(fmt::format("{}: has windows at batch {}{}: name one of them with --batch, or probe the batch you run",
                                 file, fmt::join(batches, ", "), batch ? fmt::format(", none at {}", *batch) : ""));
  return results.front();
}

Windows parse_windows(const std::string& text, const std::vector<int>& wanted, std::optional<std::uint32_t> batch) {
  Windows windows;
  if (text.ends_with(".json")) {
    const std::vector<WindowsResult> results = windows_results(read_envelope(text, "windows"));
    const WindowsResult& chosen = windows_of_batch(results, batch, text);
    windows.label = fmt::format("windows: {} at B = {}", text, chosen.batch);
    if (batch && chosen.batch != *batch) windows.label += fmt::format(", not {}", *batch);
    for (const LayerWindow& layer : chosen.layers)
      if (layer.w_ms) windows.ms[layer.k] = *layer.w_ms;
  } else {
    windows.ms = parse_by_layer("--windows", text, "time in ms (a file's name ends in .json)");
    windows.label = "windows: given, " + text;
  }
  for (const int k : wanted)
    if (!windows.ms.contains(k)) throw InputError(fmt::format("--windows {}: has no window of layer {}", text, k));
  return windows;
}

}  // namespace slacktier
