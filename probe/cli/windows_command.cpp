// slacktier-probe windows: how long each layer can wait for its rows.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "platforms/error.hpp"
#include "platforms/progress.hpp"
#include "probe/cli/commands.hpp"
#include "probe/cli/windows_options.hpp"
#include "probe/windows_table.hpp"

namespace slacktier {
namespace {

struct Arguments : WindowArguments {
  std::string plot;
  std::int64_t batch = 1;
  std::int64_t context = -1;
};

int run(const Arguments& a, const std::vector<std::string>& argv) {
  parse_table_format(a.format);
  parse_layers(a.layers, static_cast<int>(synthetic_layer_ms(a).size()));  // before anything is opened
  DeviceOptions device_options;
  device_options.work = a.work;
  const auto device = open_device(a.device, device_options);
  const auto model = synthetic_model(a, *device);
  WindowOptions options = window_options(a, model->layers());
  options.batch = a.batch;
  if (a.context >= 0) options.context = a.context;
  Progress progress("windows", 1000, ProgressUnit::steps, stderr_progress(a.quiet));
  options.progress = [&](double share) {
    const auto done = static_cast<std::uint64_t>(1000 * share);
    progress.advance(done - std::min(done, progress.done()));
  };
  Envelope envelope;
  describe_probe(envelope, "windows", a, argv, *device, *model);
  const MeasuredWindows measured = measure_windows(*device, *model, options);
  progress.finish();
  envelope.warnings = measured.warnings;
  envelope.settings["threshold_ms"] = measured.search.threshold_ms;
  envelope.settings["injector"] = options.injectors.front();
  set_windows_results(envelope, {measured.result});
  deliver(envelope, a, windows_tables(envelope));
  if (!a.plot.empty()) {
    write_text_file(a.plot, render_svg(windows_plot({envelope}, false)));
    fmt::print(stderr, "plot: {}\n", a.plot);
  }
  const bool any = std::any_of(measured.result.layers.begin(), measured.result.layers.end(),
                               [](const LayerWindow& layer) { return layer.w_ms.has_value(); });
  return any ? 0 : 1;
}

}  // namespace

void add_windows_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& chosen) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("windows", "Measure how long each layer of a model can wait for its rows");
  Arguments& a = *arguments;
  add_window_options(*command, a);
  command->add_option("--layers", a.layers, "Layers to probe: 0,1,14, all or every:3")->capture_default_str();
  command->add_option("--batch", a.batch, "Batch that the result is labelled with")->check(CLI::Range(1, 1'000'000));
  command->add_option("--context", a.context, "Context that the result is labelled with")->check(CLI::Range(0, 100'000'000));
  command->add_option("--plot", a.plot, "Write the windows as a figure (SVG)");
  command->callback([arguments, &argv, &chosen] { chosen = [arguments, &argv] { return run(*arguments, argv); }; });
}

}  // namespace slacktier
