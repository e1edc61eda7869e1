// Options and models that `windows` and `both` share.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "platforms/gpu_monitor.hpp"
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
  // Of a model that Python runs.
  std::string dtype = "bfloat16";
  bool random_weights = false, stock = false;
  int layers_limit = 0;
  std::vector<std::string> overrides;
};
void add_window_options(CLI::App& command, WindowArguments& arguments);

// Throws UsageError for arguments that are wrong before any device or model is opened.
void check_window_arguments(const WindowArguments& arguments);

// The model that the arguments name: `synthetic` of --model-layers layers of --layer-ms, `v4.1`, the profile of
// DeepSeek-V4.1, or one that Python runs with so many sequences and tokens before them. Throws UsageError, EnvironmentError.
std::unique_ptr<ProbeModel> open_model(const WindowArguments& arguments, Device& device, std::int64_t batch,
                                       std::int64_t context);

// All but the layers.
WindowOptions window_options(const WindowArguments& arguments);

// A GPU's clocks, temperature and users before the probe; read when made.
class WatchedDevice {
 public:
  explicit WatchedDevice(DeviceFacts facts);
  // After the probe: the device for provenance, and what speaks against the times.
  Json facts();
  std::vector<Warning> warnings() const;

 private:
  DeviceFacts facts_;
  OpenedMonitor monitor_;
  GpuReading before_, after_;
};

// What was probed.
struct ProbeSubject {
  std::string model, label;
  int ranks = 1;
};

// Settings and provenance of a probe that has ended.
void describe_probe(Envelope& envelope, const std::string& command, const WindowArguments& arguments,
                    const std::vector<std::string>& argv, WatchedDevice& device, const ProbeSubject& subject);

// Writes the file (if --out) and prints the tables as --format says; json prints the file.
void deliver(Envelope& envelope, const WindowArguments& arguments, const std::vector<Table>& tables);

}  // namespace slacktier
