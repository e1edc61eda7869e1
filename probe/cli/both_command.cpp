// slacktier-probe both: two layers delayed at once, against what the exposure model says.
#include <fmt/format.h>

#include <limits>
#include <memory>
#include <sstream>

#include "platforms/error.hpp"
#include "probe/both_table.hpp"
#include "probe/cli/commands.hpp"
#include "probe/cli/windows_options.hpp"
#include "reports/paper.hpp"

namespace slacktier {
namespace {

struct BothArguments : WindowArguments {
  std::string pairs;
  int steps = 30;
  std::int64_t batch = 1, context = 0;
};

// "0.4:9,0.9:9"; the paper's when empty.
std::vector<std::pair<double, double>> parse_pairs(const std::string& text) {
  std::vector<std::pair<double, double>> pairs;
  if (text.empty()) {
    for (const Json& entry : paper_values().at("table3_both_delayed_ms"))
      pairs.emplace_back(entry.at("X1").get<double>(), entry.at("X14").get<double>());
    return pairs;
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    try {
      std::size_t used = 0, used_too = 0;
      const std::string second = colon == std::string::npos ? "" : part.substr(colon + 1);
      const double x1 = std::stod(part, &used), x2 = std::stod(second, &used_too);
      if (used == colon && used_too == second.size() && x1 >= 0 && x2 >= 0) {
        pairs.emplace_back(x1, x2);
        continue;
      }
    } catch (const std::logic_error&) {
    }
    throw UsageError(fmt::format("--pairs: '{}' is no pair of delays in ms; write 0.4:9,0.9:12", part));
  }
  if (pairs.empty()) throw UsageError("--pairs: name a pair of delays at least, such as 0.4:9");
  return pairs;
}

int run(const BothArguments& a, const std::vector<std::string>& argv) {
  check_window_arguments(a);
  const auto pairs = parse_pairs(a.pairs);
  for (const auto& [x1, x2] : pairs)
    if (x1 > a.watchdog_ms || x2 > a.watchdog_ms)
      throw UsageError(fmt::format("--pairs {}:{}: longer than the watchdog of {} ms: raise it with --watchdog-ms", x1, x2,
                                   a.watchdog_ms));
  if (parse_layers(a.layers, std::numeric_limits<int>::max()).size() != 2)
    throw UsageError(fmt::format("--layers {}: two layers are delayed at once; name two, such as 1,14", a.layers));
  DeviceOptions device_options;
  device_options.work = a.work;
  const auto device = open_device(a.device, device_options);
  WatchedDevice watched(device->facts());
  const auto model = open_model(a, *device, a.batch, a.context);
  WindowOptions options = window_options(a);
  options.layers = parse_layers(a.layers, model->layers());
  const BothResult result = measure_both(*device, *model, options, pairs, a.steps);
  Envelope envelope = both_envelope(result);
  describe_probe(envelope, "both", a, argv, watched, {model->name(), model->label()});
  std::vector<std::string> head{model->label()};
  if (device->facts().backend == "cpu") {
    envelope.warnings.push_back({"emulated_device", "cpu: nothing here is of a GPU", ""});
    head.push_back("warning: " + envelope.warnings.back().message);
  }
  deliver(envelope, a, {both_table(result, head)});
  return 0;
}

}  // namespace

void add_both_command(CLI::App& app, const std::vector<std::string>& argv, std::function<int()>& chosen) {
  auto arguments = std::make_shared<BothArguments>();
  CLI::App* command = app.add_subcommand("both", "Delay two layers at once, and compare with the exposure model");
  BothArguments& a = *arguments;
  a.model = "v4.1";
  a.layers = "1,14";
  add_window_options(*command, a);
  command->add_option("--layers", a.layers, "The two layers")->capture_default_str();
  command->add_option("--pairs", a.pairs, "Delays of both in ms, as 0.4:9,0.9:12; default: the paper's six");
  command->add_option("--batch", a.batch, "Sequences of a model that Python runs")->check(CLI::Range(1, 1'000'000));
  command->add_option("--context", a.context, "Tokens before each, in its KV cache")->check(CLI::Range(0, 100'000'000));
  command->add_option("--steps", a.steps, "Steps with each pair")->check(CLI::Range(4, 100'000))->capture_default_str();
  command->callback([arguments, &argv, &chosen] { chosen = [arguments, &argv] { return run(*arguments, argv); }; });
}

}  // namespace slacktier
