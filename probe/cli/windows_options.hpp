// Options and models that `windows` and `both` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/model.hpp"
#include "probe/windows.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

struct WindowArguments {
  std::string model = "synthetic", device = "cpu", work = "spin", layers = "all", layer_ms, format = "table", out, injector;
  int model_layers = 0;  // 0: not given
  double max_seconds = 50, watchdog_ms = 1000, threshold_ms = 0;
  std::uint64_t seed = 1;
  bool quiet = false, redact = false;
};
void add_window_options(CLI::App& command, WindowArguments& arguments);

// The synthetic model that the arguments name: `synthetic` of --model-layers layers of --layer-ms, `v4.1`, the profile of
// DeepSeek-V4.1. Throws UsageError.
std::unique_ptr<ProbeModel> synthetic_model(const WindowArguments& arguments, Device& device);
// Times of its layers in ms.
std::vector<double> synthetic_layer_ms(const WindowArguments& arguments);

WindowOptions window_options(const WindowArguments& arguments, int model_layers);

// Settings and provenance of a probe.
void describe_probe(Envelope& envelope, const std::string& command, const WindowArguments& arguments,
                    const std::vector<std::string>& argv, const Device& device, const ProbeModel& model);

// Writes the file (if --out) and prints the tables as --format says; json prints the file.
void deliver(Envelope& envelope, const WindowArguments& arguments, const std::vector<Table>& tables);

}  // namespace slacktier
