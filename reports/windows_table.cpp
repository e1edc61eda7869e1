#include "reports/windows_table.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "reports/error.hpp"
#include "reports/windows_file.hpp"

namespace slacktier {
namespace {

Cell ms(std::optional<double> value, int decimals = 3) { return Cell::number(value, decimals); }

std::vector<std::string> head_of(const Envelope& envelope) {
  std::vector<std::string> head;
  const Json& settings = envelope.settings;
  if (settings.contains("model") && settings["model"].is_string())
    head.push_back(settings.value("device", "") == "attached"
                       ? settings["model"].get<std::string>()
                       : fmt::format("{} on {}", settings["model"].get<std::string>(), settings.value("device", "")));
  if (settings.contains("labels"))
    for (const Json& label : settings["labels"]) head.push_back(label.get<std::string>());
  const Json& provenance = envelope.provenance;
  if (provenance.contains("device"))
    head.push_back(fmt::format("{}: {}", provenance["device"].value("name", ""), provenance["device"].value("detail", "")));
  for (const Warning& warning : envelope.warnings) head.push_back("warning: " + warning.message);
  return head;
}

double tolerance(double true_ms) { return std::max(0.015, 0.01 * true_ms); }

// "host-node 9.349, device-clock 9.352": differences of the others from the first.
Cell difference(const LayerWindow& layer) {
  if (layer.injectors.size() < 2 || !layer.injectors[0].w_ms || !layer.injectors[1].w_ms) return {};
  return Cell::number(*layer.injectors[1].w_ms - *layer.injectors[0].w_ms, 3, true);
}

Table windows_table(const Envelope& envelope, const WindowsResult& result) {
  Table table;
  table.title = fmt::format("Prefetch windows at batch {}", result.batch);
  if (result.context) table.title += fmt::format(", context {}", *result.context);
  table.head = head_of(envelope);
  table.columns = {{"k", "", Align::right, "k"},
                   {"window", "ms", Align::right, "w_ms"},
                   {"95% from", "ms", Align::right, "lo_ms"},
                   {"to", "ms", Align::right, "hi_ms"},
                   {"of step", "%", Align::right, "share_of_step_pct"},
                   {"threshold", "ms", Align::right, "threshold_w_ms"},
                   {"slope", "", Align::right, "slope"},
                   {"2nd injector", "ms", Align::right, "second_injector_difference_ms"},
                   {"true", "ms", Align::right, "true_w_ms"},
                   {"error", "ms", Align::right, "error_ms"},
                   {"status", "", Align::left, "status"}};
  std::vector<std::string> reasons;
  double worst = 0, squares = 0;
  int worst_layer = 0;
  std::size_t compared = 0, within = 0;
  for (const LayerWindow& layer : result.layers) {
    Cell error;
    if (layer.true_w_ms && layer.w_ms) {
      const double off = *layer.w_ms - *layer.true_w_ms;
      error = Cell::number(off, 3, true);
      ++compared;
      within += std::abs(off) <= tolerance(*layer.true_w_ms);
      squares += off * off;
      if (std::abs(off) > std::abs(worst)) worst = off, worst_layer = layer.k;
    }
    Cell status(layer.status);
    if (!layer.reason.empty() && layer.status != "no-window") {
      const auto known = std::find(reasons.begin(), reasons.end(), layer.reason);
      status.mark = fmt::format(" [{}]", known - reasons.begin() + 1);
      if (known == reasons.end()) reasons.push_back(layer.reason);
    }
    table.rows.push_back({Cell::count(layer.k), ms(layer.w_ms), ms(layer.lo_ms), ms(layer.hi_ms),
                          layer.share_of_step ? Cell::number(*layer.share_of_step * 100, 1) : Cell(),
                          ms(layer.threshold_w_ms), Cell::number(layer.slope, 3), difference(layer), ms(layer.true_w_ms),
                          error, status});
  }
  for (std::size_t r = 0; r < reasons.size(); ++r) table.footnotes.push_back(fmt::format("[{}] {}", r + 1, reasons[r]));
  std::string step = fmt::format("step {:.3f} ms ± {:.3f} a step", result.step_ms, result.noise_ms.value_or(0));
  if (result.step_hooked_ms && result.perturbation_ms)
    step +=
        fmt::format("; with idle hooks {:.3f} ms ({:+.3f}, corrected for)", *result.step_hooked_ms, *result.perturbation_ms);
  else if (!result.reason.empty())
    step += "; " + result.reason;
  table.footnotes.push_back(step);
  for (const InjectorCost& cost : result.injectors)
    table.footnotes.push_back(fmt::format(
        "{}: idle hooks {:+.3f} ms, {:+.3f} of it up to layer {}; a layer goes on {:.1f} us after its delay (corrected for)",
        cost.injector, cost.step_hooked_ms - result.step_ms, cost.first_hook_ms - result.step_ms, result.layers.front().k,
        cost.latency_ms * 1e3));
  if (const auto& fit = result.fit) {
    std::string interval;
    if (fit->lo_ms_per_layer) interval = fmt::format(" ({:.4f} to {:.4f})", *fit->lo_ms_per_layer, *fit->hi_ms_per_layer);
    table.footnotes.push_back(
        fmt::format("W_k = {:.3f} + {:.4f}{} k ms, R² {:.4f}; normalised slope {:.2f} (W_k / step over k / L; the paper's "
                    "models: 0.85 to 0.92)",
                    fit->intercept_ms, fit->ms_per_layer, interval, fit->r2.value_or(0), fit->normalised_slope.value_or(0)));
  }
  if (compared > 0)
    table.footnotes.push_back(fmt::format(
        "against device timestamps without hooks: {} of {} layers within max(15 us, 1%), RMSE {:.1f} us, worst {:+.1f} us "
        "(layer {})",
        within, compared, std::sqrt(squares / static_cast<double>(compared)) * 1e3, worst * 1e3, worst_layer));
  return table;
}

std::string short_name(const Envelope& envelope, const WindowsResult& result) {
  const Json& settings = envelope.settings;
  const std::string model =
      settings.contains("model") && settings["model"].is_string() ? settings["model"].get<std::string>() : "model";
  std::string name = fmt::format("{}, L = {}, B = {}", model, result.model_layers, result.batch);
  if (!envelope.provenance.is_null() && envelope.provenance.contains("device"))
    name += ", " + envelope.provenance["device"].value("name", "");
  return name;
}

}  // namespace

std::vector<Table> windows_tables(const Envelope& envelope) {
  std::vector<Table> tables;
  for (const WindowsResult& result : windows_results(envelope)) tables.push_back(windows_table(envelope, result));
  return tables;
}

Table compare_table(const std::vector<Envelope>& files) {
  Table table;
  table.title = "Windows, normalised by step and number of layers";
  table.columns = {{"file", "", Align::left, "file", 36},
                   {"model", "", Align::left, "model", 28},
                   {"B", "", Align::right, "batch"},
                   {"L", "", Align::right, "model_layers"},
                   {"step", "ms", Align::right, ""},
                   {"per layer", "ms", Align::right, ""},
                   {"95% from", "ms", Align::right, "lo_ms_per_layer"},
                   {"to", "ms", Align::right, "hi_ms_per_layer"},
                   {"slope", "", Align::right, "normalised_slope"},
                   {"R²", "", Align::right, "r2"},
                   {"layers", "", Align::right, "layers_ok"}};
  for (const Envelope& file : files) {
    const Json& settings = file.settings;
    const Cell model =
        settings.contains("model") && settings["model"].is_string() ? Cell(settings["model"].get<std::string>()) : Cell();
    for (const WindowsResult& result : windows_results(file)) {
      std::int64_t ok = 0;
      for (const LayerWindow& layer : result.layers) ok += layer.w_ms.has_value();
      const WindowFit fit = result.fit.value_or(WindowFit{});
      const auto of_fit = [&](std::optional<double> value, int decimals) {
        return result.fit ? Cell::number(value, decimals) : Cell();
      };
      table.rows.push_back({Cell(file.file), model, Cell::count(result.batch), Cell::count(result.model_layers),
                            Cell::number(result.step_ms, 3), of_fit(fit.ms_per_layer, 4), of_fit(fit.lo_ms_per_layer, 4),
                            of_fit(fit.hi_ms_per_layer, 4), of_fit(fit.normalised_slope, 2), of_fit(fit.r2, 4),
                            Cell::count(ok)});
    }
  }
  table.footnotes.push_back("slope: of W_k / step over k / L; the paper's models: 0.85 to 0.92");
  return table;
}

Plot windows_plot(const std::vector<Envelope>& files, bool normalised) {
  Plot plot;
  plot.title = "Prefetch window of each layer";
  plot.x_label = normalised ? "depth, k / L" : "layer k";
  plot.y_label = normalised ? "window, share of the step" : "window, ms";
  for (const Envelope& file : files)
    for (const WindowsResult& result : windows_results(file)) {
      PlotSeries series;
      series.label = short_name(file, result);
      const double x_unit = normalised ? result.model_layers : 1, y_unit = normalised ? result.step_ms : 1;
      if (!(y_unit > 0)) throw InputError(file.file + ": /results: step_ms is 0");
      for (const LayerWindow& layer : result.layers) {
        if (!layer.w_ms) continue;
        PlotPoint point{layer.k / x_unit, *layer.w_ms / y_unit, {}, {}};
        if (layer.lo_ms && layer.hi_ms) point.lo = *layer.lo_ms / y_unit, point.hi = *layer.hi_ms / y_unit;
        series.points.push_back(point);
      }
      plot.series.push_back(std::move(series));
    }
  return plot;
}

}  // namespace slacktier
