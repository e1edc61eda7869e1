// What the HIP plug-in exports: the device, with the kernels of every room.
#if defined(SLACKTIER_GPU_HIP)

#include "platforms/backend.hpp"
#include "tier/gather.hpp"

namespace slacktier {
namespace {

std::unique_ptr<Device> open_with_kernels(std::string_view index, const DeviceOptions& options) {
  auto device = open_hip_gpu(index, options);
  device->load_module(tier_modules());
  return device;
}

constexpr BackendPlugin plugin{plugin_layout(), open_with_kernels};

}  // namespace

extern "C" __attribute__((visibility("default"))) const BackendPlugin* slacktier_backend() { return &plugin; }

}  // namespace slacktier

#endif
