// How a GPU fares: clocks, what slows them, temperature, power, PCIe link. Read through the vendor's management library,
// which is opened at run time: NVML (libnvidia-ml.so.1; $SLACKTIER_NVML names another), ROCm SMI (librocm_smi64.so;
// $SLACKTIER_ROCM_SMI).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "platforms/device.hpp"
#include "platforms/profile.hpp"

namespace slacktier {

// Nothing stands for what the library or the system does not tell.
struct GpuReading {
  std::optional<double> temperature_c, power_w, power_limit_w;
  std::optional<std::uint64_t> clock_mhz, clock_max_mhz, memory_clock_mhz, memory_clock_max_mhz;
  // Reasons for which clocks are below their maximum, "gpu_idle" among them; nothing: not told.
  std::optional<std::vector<std::string>> throttle;
  // Processes with work on the GPU, this one among them where the library sees its id (not through a container's); nothing:
  // not told.
  std::optional<std::vector<std::uint64_t>> processes;
  std::optional<std::uint64_t> link_generation, link_generation_max, link_lanes, link_lanes_max;
};

class GpuMonitor {
 public:
  virtual ~GpuMonitor() = default;
  virtual GpuReading read() = 0;
};

// `reason` says why there is none: a device that is no GPU, a library that is not there or does not know the device.
struct OpenedMonitor {
  std::unique_ptr<GpuMonitor> monitor;
  std::string reason;
};
// Of the device with these facts, by its PCI address. `root` comes before /sys (see proc_text.hpp).
OpenedMonitor open_gpu_monitor(const DeviceFacts& facts, const std::string& root = "");

// What a run's two readings say against it, as sentences with a code ("gpu_throttled").
struct GpuWarning {
  std::string code, message;
};
std::vector<GpuWarning> gpu_warnings(const PlatformProfile& profile, const GpuReading& before, const GpuReading& after);

// For provenance: the device's facts and profile; of both readings, `before` and `after` the run, or null and a reason.
nlohmann::ordered_json device_json(const DeviceFacts& facts, const OpenedMonitor& opened, const GpuReading& before,
                                   const GpuReading& after);

}  // namespace slacktier
