// NVIDIA's management library. Functions and numbers as nvml.h has them (NVML API reference, "Device Queries"); no header of
// it is needed to build.
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "platforms/monitor/library.hpp"
#include "platforms/monitor/monitors.hpp"

namespace slacktier {
namespace {

using Handle = void*;
using Unsigned = int(Handle, unsigned*);
using UnsignedOf = int(Handle, int, unsigned*);
using Mask = int(Handle, unsigned long long*);

constexpr int temperature_of_gpu = 0, clock_of_sm = 1, clock_of_memory = 2;

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason reasons[] = {
    {0x1, "gpu_idle"},
    {0x2, "applications_clocks"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x100, "display_clock"},
};

class Nvml final : public GpuMonitor {
 public:
  Nvml() : library_("SLACKTIER_NVML", {"libnvidia-ml.so.1", "libnvidia-ml.so"}) {}
  ~Nvml() override {
    if (!started_) return;
    if (auto* shutdown = library_.function<int()>("nvmlShutdown")) shutdown();
  }

  // Why it cannot be used; empty: it can.
  std::string open(const std::string& pci) {
    if (!library_) return fmt::format("NVML is not there: {}", library_.reason());
    auto* init = library_.function<int()>("nvmlInit_v2");
    auto* find = library_.function<int(const char*, Handle*)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (init == nullptr || find == nullptr) return "the library opened as NVML has no nvmlInit_v2";
    if (const int error = init(); error != 0) return fmt::format("NVML does not start: {}", text(error));
    started_ = true;
    if (const int error = find(pci.c_str(), &device_); error != 0)
      return fmt::format("NVML knows no GPU at {}: {}", pci, text(error));
    return {};
  }

  GpuReading read() override {
    GpuReading reading;
    if (const auto t = number("nvmlDeviceGetTemperature", temperature_of_gpu))
      reading.temperature_c = static_cast<double>(*t);
    if (const auto mw = number("nvmlDeviceGetPowerUsage")) reading.power_w = static_cast<double>(*mw) / 1e3;
    if (const auto mw = number("nvmlDeviceGetEnforcedPowerLimit")) reading.power_limit_w = static_cast<double>(*mw) / 1e3;
    reading.clock_mhz = number("nvmlDeviceGetClockInfo", clock_of_sm);
    reading.clock_max_mhz = number("nvmlDeviceGetMaxClockInfo", clock_of_sm);
    reading.memory_clock_mhz = number("nvmlDeviceGetClockInfo", clock_of_memory);
    reading.memory_clock_max_mhz = number("nvmlDeviceGetMaxClockInfo", clock_of_memory);
    reading.link_generation = number("nvmlDeviceGetCurrPcieLinkGeneration");
    reading.link_generation_max = number("nvmlDeviceGetMaxPcieLinkGeneration");
    reading.link_lanes = number("nvmlDeviceGetCurrPcieLinkWidth");
    reading.link_lanes_max = number("nvmlDeviceGetMaxPcieLinkWidth");
    // The newer name first; both give the same bits.
    for (const char* name : {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"}) {
      auto* ask = library_.function<Mask>(name);
      unsigned long long bits = 0;
      if (ask == nullptr || ask(device_, &bits) != 0) continue;
      reading.throttle.emplace();
      for (const Reason& reason : reasons) {
        if (bits & reason.bit) reading.throttle->emplace_back(reason.name);
        bits &= ~reason.bit;
      }
      if (bits != 0) reading.throttle->push_back(fmt::format("{:#x}", bits));
      break;
    }
    reading.processes = processes();
    return reading;
  }

 private:
  // nvmlProcessInfo_t of version 2 and 3.
  struct Process {
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
  };
  std::optional<std::vector<std::uint64_t>> processes() const {
    auto* ask = library_.function<int(Handle, unsigned*, Process*)>("nvmlDeviceGetComputeRunningProcesses_v3");
    std::vector<Process> found(64);
    auto count = static_cast<unsigned>(found.size());
    if (ask == nullptr || ask(device_, &count, found.data()) != 0 || count > found.size()) return {};
    std::vector<std::uint64_t> ids;
    for (unsigned i = 0; i < count; ++i) ids.push_back(found[i].pid);
    return ids;
  }
  std::string text(int error) const {
    auto* words = library_.function<const char*(int)>("nvmlErrorString");
    return words != nullptr ? words(error) : fmt::format("error {}", error);
  }
  std::optional<std::uint64_t> number(const char* name) const {
    auto* ask = library_.function<Unsigned>(name);
    unsigned value = 0;
    if (ask == nullptr || ask(device_, &value) != 0) return {};
    return value;
  }
  std::optional<std::uint64_t> number(const char* name, int of) const {
    auto* ask = library_.function<UnsignedOf>(name);
    unsigned value = 0;
    if (ask == nullptr || ask(device_, of, &value) != 0) return {};
    return value;
  }

  RuntimeLibrary library_;
  bool started_ = false;
  Handle device_ = nullptr;
};

}  // namespace

OpenedMonitor open_nvml(const std::string& pci) {
  auto nvml = std::make_unique<Nvml>();
  if (std::string reason = nvml->open(pci); !reason.empty()) return {nullptr, reason};
  return {std::move(nvml), {}};
}

}  // namespace slacktier
