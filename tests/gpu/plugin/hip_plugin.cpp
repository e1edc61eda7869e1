// The HIP plug-in of the tests: the tier's kernels and the tests' own.
#include <span>

#include "platforms/backend.hpp"
#include "tier/gather.hpp"

namespace slacktier {
namespace test {

std::span<const ModuleImage> test_modules();

}  // namespace test
namespace {

std::unique_ptr<Device> open_with_kernels(std::string_view index, const DeviceOptions& options) {
  auto device = open_hip_gpu(index, options);
  device->load_module(tier_modules());
  device->load_module(test::test_modules());
  return device;
}

constexpr BackendPlugin plugin{plugin_layout(), open_with_kernels};

}  // namespace

extern "C" __attribute__((visibility("default"))) const BackendPlugin* slacktier_backend() { return &plugin; }

}  // namespace slacktier
