// The table of compute backends. Adding one: a file in a folder of platforms/ that defines its open function, and a line in
// device.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "platforms/device.hpp"

namespace slacktier {

struct Backend {
  std::string_view name;     // the device name up to the colon
  std::string_view example;  // a full device name, for messages
  // Opens the device that `index` names: what follows the colon, or nothing. Throws UsageError for an index of the wrong
  // form or an unknown option and EnvironmentError for a device that is not there.
  std::unique_ptr<Device> (*open)(std::string_view index, const DeviceOptions& options);
};

std::unique_ptr<Device> open_cpu_device(std::string_view index, const DeviceOptions& options);
std::unique_ptr<Device> open_cuda_device(std::string_view index, const DeviceOptions& options);  // in builds with CUDA
// Loads the plug-in and opens the device with it. In builds with HIP.
std::unique_ptr<Device> open_hip_device(std::string_view index, const DeviceOptions& options);

// A backend that is loaded at run time, from a shared library that exports `extern "C" const BackendPlugin*
// slacktier_backend()`. Program and plug-in come from one build; each holds its own copy of what it uses of this folder.
struct BackendPlugin {
  std::uint64_t layout;  // plugin_layout() of the build
  // The device has loaded the kernels of every room.
  std::unique_ptr<Device> (*open)(std::string_view index, const DeviceOptions& options);
};
using BackendEntry = const BackendPlugin* (*)();

// Changes with what the two sides pass to each other.
constexpr std::uint64_t plugin_layout() {
  constexpr std::uint64_t interface = 2;  // one more whenever a virtual function of platforms/device.hpp comes or goes
  return interface << 32 | sizeof(DeviceOptions) << 16 | sizeof(DeviceFacts);
}

std::unique_ptr<Device> open_hip_gpu(std::string_view index, const DeviceOptions& options);  // in the plug-in

}  // namespace slacktier
