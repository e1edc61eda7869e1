// A GPU as a Device.
#pragma once

#include <cstdint>
#include <memory>

#include "platforms/gpu/clock.hpp"
#include "platforms/gpu/state.hpp"

namespace slacktier::gpu {

class GpuDevice final : public Device {
 public:
  // `state` has been filled in for an opened device; `detail` tells its versions and size.
  GpuDevice(std::shared_ptr<DeviceState> state, std::string detail);
  ~GpuDevice() override;

  DeviceFacts facts() const override;
  std::unique_ptr<Stream> create_stream(const std::string& name) override;
  std::unique_ptr<Stream> adopt_stream(std::uintptr_t native, const std::string& name) override;
  std::unique_ptr<Event> create_event() override;
  void begin_capture(Stream& stream) override;
  std::unique_ptr<Graph> end_capture(Stream& stream) override;
  void load_module(std::span<const ModuleImage> images) override;
  std::unique_ptr<Buffer> allocate_device(std::size_t bytes) override;
  std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override;
  std::unique_ptr<Buffer> allocate_peer(const std::string& peer, std::size_t bytes) override;
  bool posts_ring() const override { return false; }
  Nanos host_time(std::int64_t stamp) override { return clock_.host_time(stamp); }

 private:
  GpuStream& own_stream(Stream& stream) const;

  const std::shared_ptr<DeviceState> state_;
  const std::string detail_;
  std::string work_;
  std::unique_ptr<Buffer> scratch_;
  ClockMap clock_;
};

}  // namespace slacktier::gpu
