// The device that tests of the live tier run on: "cpu", or what the environment names, so that one test serves all devices.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "platforms/device.hpp"
#include "platforms/error.hpp"

namespace slacktier::testing {

// $SLACKTIER_TEST_DEVICE with $SLACKTIER_TEST_GATE. Ends the program as skipped when that device is not there.
inline std::unique_ptr<Device> open_test_device() {
  const char* name = std::getenv("SLACKTIER_TEST_DEVICE");
  const char* gate = std::getenv("SLACKTIER_TEST_GATE");
  DeviceOptions options;
  if (gate != nullptr) options.gate = gate;
  try {
    return open_device(name != nullptr ? name : "cpu", options);
  } catch (const EnvironmentError& error) {
    std::printf("SKIPPED: %s\n", error.what());
    std::fflush(stdout);
    std::_Exit(77);
  }
}

}  // namespace slacktier::testing
