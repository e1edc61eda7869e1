// Kernels for the tests of GPU devices, and a device that has loaded them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "platforms/device.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/gpu/arguments.hpp"

namespace slacktier::test {

std::span<const ModuleImage> test_modules();

// Ends the test case as skipped when there is no GPU: `const auto device = open_gpu(); if (!device) return;`.
inline std::unique_ptr<Device> open_gpu(const std::string& gate = "auto", const std::string& work = "spin") {
  try {
    DeviceOptions options;
    options.gate = gate;
    options.work = work;
    auto device = open_device("cuda:0", options);
    device->load_module(test_modules());
    return device;
  } catch (const EnvironmentError& error) {
    skip_test(error.what());
    return nullptr;
  }
}

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
