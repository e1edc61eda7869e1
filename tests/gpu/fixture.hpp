// Kernels for the tests of GPU devices, and a device that has loaded them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "platforms/device.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/arguments.hpp"

namespace slacktier::test {

// Of builds with CUDA. A HIP plug-in brings the tests' kernels itself.
#if defined(SLACKTIER_CUDA)
std::span<const ModuleImage> test_modules();
#else
inline std::span<const ModuleImage> test_modules() { return {}; }
#endif

// What the tests run on: $SLACKTIER_TEST_DEVICE, or cuda:0.
inline std::string gpu_name() {
  const char* name = std::getenv("SLACKTIER_TEST_DEVICE");
  return name != nullptr ? name : "cuda:0";
}
inline std::string gpu_backend() { return gpu_name().substr(0, gpu_name().find(':')); }
// Whether the device has the gate at all: HIP guarantees host node and spin only.
inline bool has_gate(const std::string& gate) { return gpu_backend() == "cuda" || gate != "wait-value"; }

// Ends the test case as skipped when there is no GPU: `const auto device = open_gpu(); if (!device) return;`.
inline std::unique_ptr<Device> open_gpu(const std::string& gate = "auto", const std::string& work = "spin") {
  try {
    DeviceOptions options;
    options.gate = gate;
    options.work = work;
    auto device = open_device(gpu_name(), options);
    device->load_module(test_modules());
    return device;
  } catch (const EnvironmentError& error) {
    skip_test(error.what());
    return nullptr;
  }
}

// Host-mapped words with their device addresses.
struct Words {
  explicit Words(Device& device, std::size_t n = 64) : memory(device.allocate_host(n * 8)) {}
  std::int64_t& operator[](std::size_t i) { return static_cast<std::int64_t*>(memory->host())[i]; }
  std::int64_t* device(std::size_t i) { return static_cast<std::int64_t*>(memory->device()) + i; }
  std::unique_ptr<Buffer> memory;
};

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

}  // namespace slacktier::test
