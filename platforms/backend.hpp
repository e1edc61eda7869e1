// The table of compute backends. Adding one: a file in a folder of platforms/ that defines its open function, and a line in
// device.cpp.
#pragma once

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

}  // namespace slacktier
