// slacktier-harness exposure: what windows do not hide of reads, by the exposure model; the model fitted to runs, and
// checked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <limits>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/exposure_reads.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/provenance.hpp"
#include "reports/averages.hpp"
#include "reports/by_layer.hpp"
#include "reports/exposure.hpp"
#include "reports/exposure_fit.hpp"
#include "reports/paper.hpp"
#include "reports/plot.hpp"
#include "reports/table.hpp"
#include "reports/windows_file.hpp"

namespace slacktier {
namespace {

struct ExposureArguments {
  std::string windows, reads, pages, model, plot, out, format = "table";
  std::vector<std::string> results;
  std::vector<int> fit_windows;
  double resolve_ms = 0, kappa_ms = 0, step_ms = 0;
  std::optional<std::uint32_t> batch;
  std::uint64_t seed = 1;
};

void print(const Table& table, const std::string& format) { fmt::print("{}\n", render(table, parse_table_format(format))); }

// The windows asked for, stretched to the baseline step of the batch where that is given.
Windows windows_of(const ExposureArguments& a, const std::vector<int>& layers) {
  Windows windows = parse_windows(a.windows, layers, a.batch);
  if (a.step_ms == 0) return windows;
  if (!a.windows.ends_with(".json"))
    throw UsageError("--step-ms scales the windows of a file, which names the step they were measured in; given ones stand");
  const auto results = windows_results(read_envelope(a.windows, "windows"));
  const double measured = windows_of_batch(results, a.batch, a.windows).step_ms;
  std::vector<double> values;
  for (const auto& [k, w] : windows.ms) values.push_back(w);
  values = scaled_windows(values, measured, a.step_ms);
  std::size_t i = 0;
  for (auto& [k, w] : windows.ms) w = values[i++];
  windows.label += fmt::format(", scaled from a step of {:.2f} ms to one of {:.2f} ms", measured, a.step_ms);
  return windows;
}

int evaluate(const ExposureArguments& a) {
  if (a.windows.empty() || a.reads.empty())
    throw UsageError("exposure: say --windows and --reads, files or values such as 1:0.27,14:9.35");
  std::vector<ReadTimes> all = read_times(a.reads, a.pages);
  Table table;
  table.title = "What the windows do not hide";
  table.columns = {{"reads", "", Align::left, "", 40}, {"k", "", Align::right, ""},   {"pages", "rank", Align::right, ""},
                   {"s + T", "ms", Align::right, ""},  {"W", "ms", Align::right, ""}, {"d", "ms", Align::right, ""}};
  for (const ReadTimes& reads : all) {
    std::vector<int> layers;
    std::vector<double> arrivals, windows;
    for (const auto& [k, t] : reads.t_ms) {
      layers.push_back(k);
      arrivals.push_back(t > 0 ? a.resolve_ms + t : 0);
    }
    const Windows given = windows_of(a, layers);
    if (table.head.empty()) table.head = {given.label};
    for (const int k : layers) windows.push_back(given.ms.at(k));
    const std::vector<double> d = exposures(arrivals, windows);
    Cell name(reads.name);
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const auto pages = reads.pages.find(layers[l]);
      table.rows.push_back({name, Cell::count(layers[l]), pages == reads.pages.end() ? Cell() : Cell::count(pages->second),
                            Cell::number(arrivals[l], 3), Cell::number(windows[l], 3), Cell::number(d[l], 3)});
      name.shown_as = " ";
    }
    std::string line = fmt::format("{}: slowdown {:.2f} ms; excesses added up {:.2f} ms", reads.name,
                                   exposed_ms(arrivals, windows) + a.kappa_ms, sum_of_excesses_ms(arrivals, windows));
    if (!reads.steps_ms.empty()) {
      std::vector<std::vector<double>> steps = reads.steps_ms;
      for (auto& step : steps)
        for (double& t : step) t = t > 0 ? t + a.resolve_ms : 0;
      const Summary summary = summarise(exposed_samples(steps, windows));
      line += fmt::format("; of {} batches: mean {:.2f} ms", summary.n, summary.mean + a.kappa_ms);
      if (summary.p99)
        line += fmt::format(", p99 {:.2f} ms", *summary.p99 + a.kappa_ms);
      else
        line += fmt::format(" (a p99 needs {})", summary.p99_needs);
    }
    table.footnotes.push_back(line);
  }
  if (a.kappa_ms != 0) table.head.push_back(fmt::format("kappa {} ms is part of each slowdown", a.kappa_ms));
  print(table, a.format);
  return 0;
}

std::vector<ExposureRun> runs_of(const ExposureArguments& a) {
  std::vector<ExposureRun> runs;
  for (const std::string& file : a.results) {
    const Envelope envelope = read_envelope(file, "results");
    const std::string name = a.results.size() > 1 ? std::filesystem::path(file).stem().string() : "";
    for (ExposureRun& run : exposure_runs(envelope, name)) runs.push_back(std::move(run));
  }
  if (a.windows.empty()) return runs;
  const Windows windows = parse_windows(a.windows, {}, a.batch);
  for (ExposureRun& run : runs)
    for (std::size_t l = 0; l < run.k.size(); ++l)
      if (const auto found = windows.ms.find(run.k[l]); found != windows.ms.end()) run.window_ms[l] = found->second;
  return runs;
}

Plot residual_plot(const ExposureFit& fit) {
  PlotSeries series{"measured - predicted, with the measurement's interval", {}, false, true};
  for (const ExposurePoint& point : fit.points) {
    PlotPoint mark{point.predicted_ms, point.measured_ms - point.predicted_ms, {}, {}};
    if (point.lo_ms && point.hi_ms) mark.lo = *point.lo_ms - point.predicted_ms, mark.hi = *point.hi_ms - point.predicted_ms;
    series.points.push_back(mark);
  }
  return {"Residuals of the exposure model", "predicted slowdown (ms)", "measured - predicted (ms)", {series}, {}};
}

void show(const ExposureArguments& a, const ExposureFit& fit, const std::vector<ExposureRun>& runs, const char* title) {
  Table table;
  table.title = title;
  table.columns = {{"run", "", Align::left, "", 48},         {"measured", "ms", Align::right, ""},
                   {"95% interval", "ms", Align::right, ""}, {"Eq. 1", "ms", Align::right, "predicted_ms"},
                   {"difference", "ms", Align::right, ""},   {"at the gates", "ms", Align::right, "stall_ms"}};
  std::size_t inside = 0, with_interval = 0;
  for (std::size_t i = 0; i < fit.points.size(); ++i) {
    const ExposurePoint& point = fit.points[i];
    Cell interval;
    if (point.lo_ms && point.hi_ms) {
      interval = Cell(fmt::format("[{:+.2f}, {:+.2f}]", *point.lo_ms, *point.hi_ms));
      ++with_interval;
      if (*point.lo_ms <= point.predicted_ms && point.predicted_ms <= *point.hi_ms) ++inside;
    }
    table.rows.push_back({point.name, Cell::number(point.measured_ms, 2, true), interval,
                          Cell::number(point.predicted_ms, 2, true),
                          Cell::number(point.measured_ms - point.predicted_ms, 2, true), Cell::number(runs[i].stall_ms, 2)});
  }
  const auto with = [](const Interval& v, bool fitted) {
    return fitted ? fmt::format("{:.3f} [{:.3f}, {:.3f}]", v.estimate, v.lo, v.hi)
                  : fmt::format("{:.3f} (given)", v.estimate);
  };
  table.head.push_back(fmt::format("kappa {} ms", with(fit.kappa_ms, fit.kappa_fitted)));
  for (const FittedWindow& window : fit.windows)
    table.head.push_back(fmt::format("W of layer {}: {} ms", window.k, with(window.w_ms, window.fitted)));
  table.footnotes.push_back(
      fmt::format("{} runs: RMSE {:.3f} ms, R2 {}; {} of {} measured intervals hold the prediction", fit.n, fit.rmse_ms,
                  fit.r2 ? fmt::format("{:.3f}", *fit.r2) : "none (all equally slow)", inside, with_interval));
  table.footnotes.push_back(
      "Eq. 1 takes means of s and T_k of the slowest rank; at the gates: stall measured there, all layers");
  print(table, a.format);
  if (!a.plot.empty()) write_text_file(a.plot, render_svg(residual_plot(fit)));
}

int fit(const ExposureArguments& a, const Invocation& invocation) {
  const std::vector<ExposureRun> runs = runs_of(a);
  const ExposureFit found = fit_exposure(runs, a.fit_windows, a.seed);
  show(a, found, runs, "The exposure model fitted to these runs");
  if (a.out.empty()) return 0;
  Envelope envelope;
  set_exposure(envelope, found);
  ProvenanceInput input{"slacktier-harness exposure fit", invocation.argv, a.seed, std::time(nullptr), Json::object()};
  input.facts["host"] = host_json(read_host_facts());
  envelope.provenance = provenance(input);
  envelope.settings["files"] = a.results;
  write_envelope(a.out, envelope);
  return 0;
}

int check(const ExposureArguments& a) {
  const std::vector<ExposureRun> runs = runs_of(a);
  ExposureFit model;
  if (!a.model.empty()) {
    model = exposure_of(read_envelope(a.model, "exposure"));
    // Windows that the fit was given belong to its runs; these runs have their own.
    std::erase_if(model.windows, [](const FittedWindow& window) { return !window.fitted; });
  }
  if (a.kappa_ms != 0) model.kappa_ms = {a.kappa_ms, a.kappa_ms, a.kappa_ms};
  show(a, check_exposure(runs, model), runs, "Runs that the exposure model never saw");
  return 0;
}

int table3(const ExposureArguments& a) {
  const PaperWindows paper = paper_windows();
  const std::vector<double> windows{paper.window_ms.at(1), paper.window_ms.at(14)};
  Table table;
  table.title = "Both layers delayed at once (the paper's Table 3)";
  table.head = {fmt::format("windows: the paper's, W1 = {} ms, W14 = {} ms; measured: the paper's", windows[0], windows[1])};
  table.columns = {{"X1", "ms", Align::right, ""},
                   {"X14", "ms", Align::right, ""},
                   {"measured", "ms", Align::right, ""},
                   {"Eq. 1", "ms", Align::right, "eq1_ms"},
                   {"sum", "ms", Align::right, ""},
                   {"paper's Eq. 1", "ms", Align::right, "paper_eq1_ms"},
                   {"paper's sum", "ms", Align::right, "paper_sum_ms"}};
  bool same = true;
  double eq1 = 0, sum = 0, n = 0;
  for (const Json& row : paper_values().at("table3_both_delayed_ms")) {
    const std::vector<double> delays{row.at("X1").get<double>(), row.at("X14").get<double>()};
    const double measured = row.at("measured").get<double>();
    const double predicted = exposed_ms(delays, windows), added = sum_of_excesses_ms(delays, windows);
    same = same && std::abs(predicted - row.at("eq1").get<double>()) < 5e-3 &&
           std::abs(added - row.at("sum").get<double>()) < 5e-3;
    eq1 += (predicted - measured) * (predicted - measured);
    sum += (added - measured) * (added - measured);
    n += 1;
    table.rows.push_back({Cell::number(delays[0], 1), Cell::number(delays[1], 1), Cell::number(measured),
                          Cell::number(predicted), Cell::number(added), Cell::number(row.at("eq1").get<double>()),
                          Cell::number(row.at("sum").get<double>())});
  }
  table.footnotes = {fmt::format("RMSE against the measured column: Eq. 1 {:.2f} ms, sum of excesses {:.2f} ms",
                                 std::sqrt(eq1 / n), std::sqrt(sum / n))};
  print(table, a.format);
  return same ? 0 : 1;
}

void add_window_options(CLI::App& app, ExposureArguments& a) {
  app.add_option("--windows", a.windows, "Windows in ms, such as 1:0.27,14:9.35, or a windows file");
  app.add_option("--batch", a.batch, "Of several batches in the windows file this one");
  app.add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
}

void add_run_options(CLI::App& app, ExposureArguments& a) {
  app.add_option("results", a.results, "Results files of slacktier-harness run")->required();
  add_window_options(app, a);
  app.add_option("--plot", a.plot, "Residuals as SVG");
}

}  // namespace

void add_exposure_command(CLI::App& app, const Invocation& invocation, std::function<int()>& chosen) {
  auto arguments = std::make_shared<ExposureArguments>();
  ExposureArguments& a = *arguments;
  CLI::App* command = app.add_subcommand(
      "exposure", "What windows do not hide of reads (Eq. 1): from values or files; fitted to runs, checked against others");
  command->require_subcommand(0, 1);
  add_window_options(*command, a);
  command->add_option("--reads", a.reads, "Read times T_k in ms, such as 1:2.34,14:3.57, or a reads file");
  command->add_option("--pages", a.pages, "Pages per rank, such as 1:700,14:700: T_k by the reads file's fit");
  command->add_option("--resolve-ms", a.resolve_ms, "Resolve time s")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--step-ms", a.step_ms, "Baseline step of the batch meant: the file's windows are scaled to it")
      ->check(CLI::PositiveNumber);
  command->add_option("--kappa-ms", a.kappa_ms, "Slowdown that no read explains")->capture_default_str();
  command->callback([arguments, command, &chosen] {
    if (command->get_subcommands().empty()) chosen = [arguments] { return evaluate(*arguments); };
  });
  CLI::App* fitting = command->add_subcommand("fit", "Fit kappa, and windows if wanted, to runs");
  add_run_options(*fitting, a);
  fitting->add_option("--fit-windows", a.fit_windows, "Layers whose window is fitted, such as 1 or 1,14")->delimiter(',');
  fitting->add_option("--seed", a.seed, "Seed of the intervals")->capture_default_str();
  fitting->add_option("--out", a.out, "File of the fit, for check and plan");
  fitting->callback(
      [arguments, &invocation, &chosen] { chosen = [arguments, &invocation] { return fit(*arguments, invocation); }; });
  CLI::App* checking = command->add_subcommand("check", "Predict runs that the model never saw");
  add_run_options(*checking, a);
  checking->add_option("--model", a.model, "File of a fit; default: the runs' own windows");
  checking->add_option("--kappa-ms", a.kappa_ms, "Slowdown that no read explains, instead of the fit's");
  checking->callback([arguments, &chosen] { chosen = [arguments] { return check(*arguments); }; });
  CLI::App* third = command->add_subcommand("table3", "The paper's six pairs of delays");
  third->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  third->callback([arguments, &chosen] { chosen = [arguments] { return table3(*arguments); }; });
}

}  // namespace slacktier
