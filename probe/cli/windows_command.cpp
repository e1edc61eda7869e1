// slacktier-probe windows: how long each layer can wait for its rows.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <sstream>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "platforms/progress.hpp"
#include "probe/cli/attached.hpp"
#include "probe/cli/commands.hpp"
#include "probe/cli/windows_options.hpp"
#include "reports/windows_table.hpp"

namespace slacktier {
namespace {

struct WindowsArguments : WindowArguments {
  std::string plot, batches = "1";
  std::int64_t context = -1;
  AttachArguments attach;
};

std::vector<std::int64_t> parse_batches(const std::string& text) {
  std::vector<std::int64_t> batches;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::int64_t batch = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), batch);
    if (error != std::errc() || end != part.data() + part.size() || batch < 1 || batch > 1'000'000 ||
        std::find(batches.begin(), batches.end(), batch) != batches.end())
      throw UsageError(
          fmt::format("--batch {}: '{}' is no batch from 1 to 1000000, or is there twice; write 32,128", text, part));
    batches.push_back(batch);
  }
  if (batches.empty()) throw UsageError("--batch: name a batch at least");
  return batches;
}

void advance(Progress& progress, double share) {
  const auto done = static_cast<std::uint64_t>(1000 * share);
  progress.advance(done - std::min(done, progress.done()));
}

// The results of all batches, one after the other.
struct Measured {
  std::vector<WindowsResult> results;
  std::vector<Warning> warnings;
  ProbeSubject subject;
  double threshold_ms = 0;
  std::string injector;

  void add(const MeasuredWindows& one, const std::string& injected) {
    const std::string place = std::to_string(results.size());
    results.push_back(one.result);
    for (Warning warning : one.warnings) {
      if (warning.field.starts_with("/results/0")) warning.field.replace(9, 1, place);
      warnings.push_back(std::move(warning));
    }
    threshold_ms = one.search.threshold_ms;
    injector = injected;
  }
};

Measured measure(const WindowsArguments& a, const std::vector<std::int64_t>& batches, Device& device, Nanos began) {
  Measured all;
  Progress progress("windows", 1000, ProgressUnit::steps, stderr_progress(a.quiet));
  const double parts = static_cast<double>(batches.size());
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto model = open_model(a, device, batches[i], std::max<std::int64_t>(0, a.context));
    WindowOptions options = window_options(a);
    options.layers = parse_layers(a.layers, model->layers());
    options.batch = batches[i];
    if (a.context >= 0) options.context = a.context;
    // A synthetic model's time counts from the program's start; what loading a real one takes is beside the measurement.
    options.max_seconds = a.max_seconds / parts;
    if (i > 0 || model->name() != "synthetic") began = monotonic_clock().now();
    options.began = began;
    options.progress = [&](double share) { advance(progress, (static_cast<double>(i) + share) / parts); };
    MeasuredWindows one = measure_windows(device, *model, options);
    if (batches.size() > 1)
      for (Warning& warning : one.warnings) warning.message = fmt::format("B = {}: {}", batches[i], warning.message);
    all.add(one, options.injectors.front());
    all.subject = {model->name(), model->label()};
  }
  progress.finish();
  return all;
}

Measured measure_engine(const WindowsArguments& a, std::int64_t batch) {
  Measured all;
  Progress progress("windows", 1000, ProgressUnit::steps, stderr_progress(a.quiet));
  WindowOptions options = window_options(a);
  options.batch = batch;
  if (a.context >= 0) options.context = a.context;
  options.progress = [&](double share) { advance(progress, share); };
  all.add(attached_windows(a.attach, a, options, all.subject), "host-node");
  progress.finish();
  return all;
}

int run(const WindowsArguments& a, const std::vector<std::string>& argv) {
  const std::vector<std::int64_t> batches = parse_batches(a.batches);
  const Nanos began = monotonic_clock().now();
  check_attach_arguments(a.attach, a, batches.size());
  const bool attached = !a.attach.directory.empty();
  std::unique_ptr<Device> device;
  DeviceFacts facts;
  if (attached) {
    facts.backend = "attached";
    facts.name = "the engine's device";
    facts.detail = "not told";
  } else {
    check_window_arguments(a);
    DeviceOptions device_options;
    device_options.work = a.work;
    device = open_device(a.device, device_options);
    facts = device->facts();
  }
  WatchedDevice watched(facts);
  const Measured measured = attached ? measure_engine(a, batches.front()) : measure(a, batches, *device, began);
  Envelope envelope;
  const std::vector<WindowsResult>& results = measured.results;
  describe_probe(envelope, "windows", a, argv, watched, measured.subject);
  if (attached) envelope.settings["device"] = "attached";
  envelope.settings["threshold_ms"] = measured.threshold_ms;
  envelope.settings["injector"] = measured.injector;
  envelope.warnings.insert(envelope.warnings.begin(), measured.warnings.begin(), measured.warnings.end());
  set_windows_results(envelope, results);
  deliver(envelope, a, windows_tables(envelope));
  if (!a.plot.empty()) {
    write_text_file(a.plot, render_svg(windows_plot({envelope}, results.size() > 1)));
    fmt::print(stderr, "plot: {}\n", a.plot);
  }
  const bool any = std::any_of(results.begin(), results.end(), [](const WindowsResult& result) {
    return std::any_of(result.layers.begin(), result.layers.end(),
                       [](const LayerWindow& layer) { return layer.w_ms.has_value(); });
  });
  return any ? 0 : 1;
}

}  // namespace

void add_windows_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& chosen) {
  auto arguments = std::make_shared<WindowsArguments>();
  CLI::App* command = app.add_subcommand("windows", "Measure how long each layer of a model can wait for its rows");
  WindowsArguments& a = *arguments;
  add_window_options(*command, a);
  command->add_option("--layers", a.layers, "Layers to probe: 0,1,14, all or every:3")->capture_default_str();
  command
      ->add_option("--batch", a.batches,
                   "Sequences, or a list (32,128) that shares the time; a synthetic model is only labelled with it")
      ->capture_default_str();
  command->add_option("--context", a.context, "Tokens before each, in the KV cache; default: not said")
      ->check(CLI::Range(0, 100'000'000));
  add_attach_options(*command, a.attach);
  command->add_option("--plot", a.plot, "Write the windows as a figure (SVG)");
  command->callback([arguments, &argv, &chosen] { chosen = [arguments, &argv] { return run(*arguments, argv); }; });
}

}  // namespace slacktier
