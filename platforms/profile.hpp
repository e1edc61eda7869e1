// What is taken of a kind of GPU before anything was measured on the machine at hand.
#pragma once

#include <span>
#include <string_view>

#include "platforms/device.hpp"

namespace slacktier {

struct PlatformProfile {
  std::string_view name;       // "h200"
  std::string_view gate;       // of its streams where no gates file says better: "spin", "wait-value", "host-node"
  std::string_view gate_from;  // what that choice rests on
  // Thresholds of warnings; 0: none.
  double hot_c = 0;         // at this temperature clocks are about to fall
  int link_generation = 0;  // PCIe link that this kind has to its host
  int link_lanes = 0;
  // Whether it is the device's; the first profile that says so is taken.
  bool (*fits)(const DeviceFacts& facts);
};

// By name, backend and architecture of the facts. "generic" where no other fits.
const PlatformProfile& platform_profile(const DeviceFacts& facts);
std::span<const PlatformProfile* const> platform_profiles();

}  // namespace slacktier
