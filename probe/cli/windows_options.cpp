#include "probe/cli/windows_options.hpp"

#include <cmath>
#include <cstdio>
#include <ctime>
#include <sstream>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/program.hpp"
#include "platforms/provenance.hpp"
#include "probe/python_model.hpp"
#include "reports/paper.hpp"

namespace slacktier {
namespace {

constexpr int default_layers = 40;
constexpr double default_layer_ms = 0.7;

std::vector<double> numbers(const std::string& option, const std::string& text) {
  std::vector<double> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::size_t used = 0;
    double value = -1;
    try {
      value = std::stod(part, &used);
    } catch (const std::logic_error&) {
    }
    if (used != part.size() || !(value >= 0) || value > 1000)
      throw UsageError(fmt::format("{}: '{}' is no time in ms from 0 to 1000", option, part));
    values.push_back(value);
  }
  return values;
}

std::vector<double> synthetic_layer_ms(const WindowArguments& a) {
  if (a.model == "v4.1") {
    if (a.model_layers != 0 || !a.layer_ms.empty())
      throw UsageError("--model v4.1 has layers and times of its own: leave out --model-layers and --layer-ms");
    return paper_v41_layer_ms();
  }
  if (a.model != "synthetic")
    throw UsageError(
        fmt::format("unknown model '{}': use synthetic, v4.1, a Hugging Face id (OWNER/NAME), a folder, a config.json, or "
                    "python:MODULE:FUNCTION",
                    a.model));
  std::vector<double> layers =
      a.layer_ms.empty() ? std::vector<double>{default_layer_ms} : numbers("--layer-ms", a.layer_ms);
  if (layers.size() == 1)
    layers.resize(static_cast<std::size_t>(a.model_layers != 0  ? a.model_layers
                                           : a.layer_ms.empty() ? default_layers
                                                                : 1),
                  layers.front());
  if (a.model_layers != 0 && layers.size() != static_cast<std::size_t>(a.model_layers))
    throw UsageError(fmt::format("--layer-ms lists {} layers, --model-layers says {}", layers.size(), a.model_layers));
  return layers;
}

}  // namespace

void add_window_options(CLI::App& command, WindowArguments& a) {
  command
      .add_option("--model", a.model,
                  "synthetic (layers of given times); v4.1 (the profile of DeepSeek-V4.1 at B = 128); a Hugging Face id "
                  "OWNER/NAME, a "
                  "folder or a config.json; or python:MODULE:FUNCTION")
      ->capture_default_str();
  command.add_flag("--random-weights", a.random_weights, "Of a Hugging Face model only its config is read");
  command.add_flag(
      "--stock", a.stock,
      "Keep transformers' attention, norms and caches, which a serving engine would not run: its step is longer");
  command.add_option("--dtype", a.dtype, "Of its weights and cache: bfloat16, float16 or float32")->capture_default_str();
  command.add_option("--layers-limit", a.layers_limit, "Only its first layers")->check(CLI::Range(1, 1000));
  command.add_option("--config", a.overrides, "Change its config: hidden_size=1024; may be repeated");
  command
      .add_option("--model-layers", a.model_layers,
                  "Layers of the synthetic model; default: 40, or as many as --layer-ms lists")
      ->check(CLI::Range(1, 1000));
  command.add_option("--layer-ms", a.layer_ms, "Time of each of its layers, or a list with one time a layer; default: 0.7");
  command.add_option("--device", a.device, "Compute device: cpu, or cuda:0 where built")->capture_default_str();
  command.add_option("--work", a.work, "What a synthetic layer does with a GPU: spin, gemm or stream")
      ->capture_default_str();
  command.add_option("--max-seconds", a.max_seconds, "Time for measuring; what is not known by then is reported as such")
      ->check(CLI::Range(0.1, 86400.0))
      ->capture_default_str();
  command.add_option("--watchdog-ms", a.watchdog_ms, "No delay is longer")
      ->check(CLI::Range(0.001, 60000.0))
      ->capture_default_str();
  command
      .add_option("--threshold-ms", a.threshold_ms,
                  "What a step must take longer to count as delayed; default: 0.3 ms, 3 standard deviations "
                  "or 1% of the step, whichever is most")
      ->check(CLI::PositiveNumber);
  command.add_option("--injector", a.injector, "host-node or device-clock alone; default: the first, checked by the second");
  command.add_option("--seed", a.seed, "Of the order of steps and of the intervals")->capture_default_str();
  command.add_option("--out", a.out, "Result file");
  command.add_option("--format", a.format, "table, md, csv or json (the result file)")->capture_default_str();
  command.add_flag("-q,--quiet", a.quiet, "No progress");
  command.add_flag("--redact", a.redact, "Hash host names and paths in the result file");
}

void check_window_arguments(const WindowArguments& a) {
  parse_table_format(a.format);
  if (is_python_model(a.model)) {
    if (a.model_layers != 0 || !a.layer_ms.empty())
      throw UsageError("--model-layers and --layer-ms are of the synthetic model; --layers-limit shortens a real one");
    return;
  }
  if (a.random_weights || a.stock || a.layers_limit != 0 || !a.overrides.empty())
    throw UsageError(fmt::format(
        "--random-weights, --stock, --layers-limit and --config are of models that Python runs; '{}' is none", a.model));
  parse_layers(a.layers, static_cast<int>(synthetic_layer_ms(a).size()));
}

std::unique_ptr<ProbeModel> open_model(const WindowArguments& a, Device& device, std::int64_t batch, std::int64_t context) {
  if (is_python_model(a.model)) {
    PythonModelOptions options{a.model,        a.device,    a.dtype, a.random_weights, a.stock,
                               a.layers_limit, a.overrides, batch,   context,          a.seed};
    return std::make_unique<PythonModel>(device, options);
  }
  std::vector<Nanos> times;
  double step = 0;
  for (const double ms : synthetic_layer_ms(a)) {
    times.push_back(static_cast<Nanos>(std::llround(ms * 1e6)));
    step += ms;
  }
  const std::string what =
      a.model == "v4.1" ? "layers timed as the paper's DeepSeek-V4.1 on 4xH200" : "layers of given times";
  const std::size_t n = times.size();
  return std::make_unique<SyntheticModel>(
      device, std::move(times), fmt::format("{}: {} layers, {:.3f} ms of work ({})", what, n, step, device.facts().work));
}

WindowOptions window_options(const WindowArguments& a) {
  WindowOptions options;
  if (!a.injector.empty()) options.injectors = {a.injector};
  if (a.threshold_ms > 0) options.threshold_ms = a.threshold_ms;
  options.max_seconds = a.max_seconds;
  options.watchdog_ms = a.watchdog_ms;
  options.seed = a.seed;
  options.stop = [] { return interrupted(); };
  return options;
}

WatchedDevice::WatchedDevice(DeviceFacts facts) : facts_(std::move(facts)), monitor_(open_gpu_monitor(facts_)) {
  if (monitor_.monitor) before_ = monitor_.monitor->read();
}

Json WatchedDevice::facts() {
  if (monitor_.monitor) after_ = monitor_.monitor->read();
  return device_json(facts_, monitor_, before_, after_);
}

std::vector<Warning> WatchedDevice::warnings() const {
  std::vector<Warning> warnings;
  for (const GpuWarning& warning : gpu_warnings(platform_profile(facts_), before_, after_))
    warnings.push_back({warning.code, warning.message, "/provenance/device"});
  return warnings;
}

void describe_probe(Envelope& envelope, const std::string& command, const WindowArguments& a,
                    const std::vector<std::string>& argv, WatchedDevice& device, const ProbeSubject& subject) {
  envelope.settings = {{"model", subject.model},  {"device", a.device},           {"ranks", subject.ranks},
                       {"labels", Json::array()}, {"max_seconds", a.max_seconds}, {"watchdog_ms", a.watchdog_ms},
                       {"layers", a.layers}};
  if (!subject.label.empty()) envelope.settings["labels"].push_back(subject.label);
  ProvenanceInput input;
  input.program = "slacktier-probe " + command;
  input.argv = argv;
  input.seed = a.seed;
  input.start_unix_s = std::time(nullptr);
  input.facts["host"] = host_json(read_host_facts());
  input.facts["device"] = device.facts();
  envelope.provenance = provenance(input);
  for (const Warning& warning : device.warnings()) envelope.warnings.push_back(warning);
}

void deliver(Envelope& envelope, const WindowArguments& a, const std::vector<Table>& tables) {
  if (a.redact) redact(envelope);
  if (!a.out.empty()) write_envelope(a.out, envelope);
  const TableFormat format = parse_table_format(a.format);
  if (format == TableFormat::json)
    fmt::print("{}", to_text(envelope));
  else
    for (const Table& table : tables) fmt::print("{}\n", render(table, format));
  std::fflush(stdout);
  if (!a.out.empty()) fmt::print(stderr, "{}: {}\n", envelope.kind, a.out);
}

}  // namespace slacktier
