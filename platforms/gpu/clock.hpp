// The device's clock on the host's: a line through two moments at which both were read.
#pragma once

#include <cstdint>
#include <memory>

#include "platforms/gpu/stream.hpp"

namespace slacktier::gpu {

class ClockMap {
 public:
  // Reads both clocks. Throws DeviceError when the device does not answer.
  explicit ClockMap(std::shared_ptr<DeviceState> device);

  // The host's monotonic time of the device's `stamp`. Reads both clocks anew when that is a second ago: the device must
  // then be able to run a kernel.
  Nanos host_time(std::int64_t stamp);
  // How far apart the two could be at the latest reading: half of what a question and its answer took.
  Nanos uncertainty() const { return latest_.uncertainty; }

 private:
  struct Moment {
    Nanos host = 0, device = 0, uncertainty = 0;
  };
  Moment read();

  const std::shared_ptr<DeviceState> device_;
  GpuStream stream_;
  std::unique_ptr<Buffer> mailbox_;
  Moment latest_;
  double rate_ = 1;  // host nanoseconds of a device nanosecond
};

}  // namespace slacktier::gpu
