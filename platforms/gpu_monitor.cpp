#include "platforms/gpu_monitor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "platforms/monitor/monitors.hpp"

namespace slacktier {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json reading_json(const GpuReading& reading) {
  Json json;
  json["temperature_c"] = or_null(reading.temperature_c);
  json["power_w"] = or_null(reading.power_w);
  json["power_limit_w"] = or_null(reading.power_limit_w);
  json["clock_mhz"] = or_null(reading.clock_mhz);
  json["clock_max_mhz"] = or_null(reading.clock_max_mhz);
  json["memory_clock_mhz"] = or_null(reading.memory_clock_mhz);
  json["memory_clock_max_mhz"] = or_null(reading.memory_clock_max_mhz);
  json["throttle_reasons"] = or_null(reading.throttle);
  json["processes"] = reading.processes ? Json(reading.processes->size()) : Json(nullptr);
  json["pcie"] = {{"generation", or_null(reading.link_generation)},
                  {"max_generation", or_null(reading.link_generation_max)},
                  {"width", or_null(reading.link_lanes)},
                  {"max_width", or_null(reading.link_lanes_max)}};
  return json;
}

// Clocks that are low because nothing runs, or because somebody set them so, are no throttling.
bool slows(const std::string& reason) {
  return reason != "gpu_idle" && reason != "applications_clocks" && reason != "sync_boost" && reason != "display_clock";
}

// In a container a single process under another id is most likely this one.
std::size_t other_processes(const GpuReading& reading) {
  if (!reading.processes || reading.processes->empty()) return 0;
  return reading.processes->size() - 1;
}

}  // namespace

OpenedMonitor open_gpu_monitor(const DeviceFacts& facts, const std::string& root) {
  if (facts.backend != "cuda" && facts.backend != "hip") return {nullptr, "the device is no GPU"};
  if (facts.pci.empty()) return {nullptr, "the runtime does not tell the device's PCI address"};
  // HIP on an NVIDIA GPU, for tests, is NVIDIA's to tell about.
  const bool amd = facts.backend == "hip" && facts.architecture.starts_with("gfx");
  return amd ? open_rocm_smi(facts.pci, root) : open_nvml(facts.pci);
}

std::vector<GpuWarning> gpu_warnings(const PlatformProfile& profile, const GpuReading& before, const GpuReading& after) {
  std::vector<GpuWarning> warnings;
  std::vector<std::string> reasons;
  for (const GpuReading* reading : {&before, &after})
    for (const std::string& reason : reading->throttle.value_or(std::vector<std::string>()))
      if (slows(reason) && std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) reasons.push_back(reason);
  if (!reasons.empty())
    warnings.push_back(
        {"gpu_throttled", fmt::format("the GPU lowers its clocks: {}; times are longer than it could do: cool "
                                      "it, raise its power limit, or end what else uses it",
                                      fmt::join(reasons, ", "))});
  const std::size_t others = std::max(other_processes(before), other_processes(after));
  if (others > 0)
    warnings.push_back(
        {"gpu_shared",
         fmt::format("{} other process{} on this GPU: what {} is in these times; end {} and measure again", others,
                     others == 1 ? " works" : "es work", others == 1 ? "it does" : "they do", others == 1 ? "it" : "them")});
  const double hottest = std::max(before.temperature_c.value_or(0), after.temperature_c.value_or(0));
  if (profile.hot_c > 0 && hottest >= profile.hot_c)
    warnings.push_back(
        {"gpu_hot", fmt::format("the GPU is at {:.0f} C; from about {:.0f} C on its clocks fall", hottest, profile.hot_c)});
  // An idle link may rest at a lower generation: the better of the two readings counts.
  const auto better = [](const std::optional<std::uint64_t>& a, const std::optional<std::uint64_t>& b) {
    return std::max(a.value_or(0), b.value_or(0));
  };
  const auto low = [&](const char* what, std::uint64_t has, std::uint64_t most, int usual) {
    if (has != 0 && most != 0 && has < most)
      warnings.push_back({"gpu_link_low", fmt::format("the GPU's PCIe link runs at {} {} of {}: reads of host memory take "
                                                      "longer; look at slot, riser and BIOS",
                                                      what, has, most)});
    else if (most != 0 && usual != 0 && most < static_cast<std::uint64_t>(usual))
      warnings.push_back({"gpu_link_low", fmt::format("the GPU's PCIe link has {} {} at most; {} GPUs have {}", what, most,
                                                      profile.name, usual)});
  };
  low("generation", better(before.link_generation, after.link_generation),
      better(before.link_generation_max, after.link_generation_max), profile.link_generation);
  low("width", better(before.link_lanes, after.link_lanes), better(before.link_lanes_max, after.link_lanes_max),
      profile.link_lanes);
  return warnings;
}

nlohmann::ordered_json device_json(const DeviceFacts& facts, const OpenedMonitor& opened, const GpuReading& before,
                                   const GpuReading& after) {
  Json json = {{"name", facts.name}, {"backend", facts.backend},     {"detail", facts.detail},
               {"gate", facts.gate}, {"gate_from", facts.gate_from}, {"work", facts.work}};
  if (facts.backend == "cpu") return json;
  json["architecture"] = facts.architecture;
  json["pci"] = facts.pci.empty() ? Json(nullptr) : Json(facts.pci);
  json["unified_memory"] = facts.unified_memory;
  json["profile"] = std::string(platform_profile(facts).name);
  json["before"] = opened.monitor ? reading_json(before) : Json(nullptr);
  json["after"] = opened.monitor ? reading_json(after) : Json(nullptr);
  if (!opened.monitor) json["reason"] = opened.reason;
  return json;
}

}  // namespace slacktier
