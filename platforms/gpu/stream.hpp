// Streams and events of a GPU.
#pragma once

#include <memory>
#include <string>

#include "platforms/gpu/state.hpp"

namespace slacktier::gpu {

class GpuEvent final : public Event {
 public:
  explicit GpuEvent(std::shared_ptr<DeviceState> owner);
  ~GpuEvent() override;

  const std::shared_ptr<DeviceState> device;
  rt::Event native = nullptr;
  bool captured = false;           // the latest record was in a capture,
  unsigned long long capture = 0;  // this one
};

// Destroying a stream whose work waits at a gate opens that gate; synchronize first to have the work done right.
class GpuStream final : public Stream {
 public:
  GpuStream(std::shared_ptr<DeviceState> device, const std::string& name);
  // Another library's stream: it is neither drained nor destroyed here.
  GpuStream(std::shared_ptr<DeviceState> device, const std::string& name, rt::Stream native);
  ~GpuStream() override;

  void launch(std::string_view name, const void* args, std::size_t bytes) override;
  void compute(Nanos duration) override;
  void copy(void* destination, const void* source, std::size_t bytes) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes) override;
  void host_function(void (*function)(void*), void* user) override;
  void record(Event& event) override;
  void wait(Event& event) override;
  void await(Signal& signal) override;
  void reset(Signal& signal) override;
  void post(Post& post) override;
  void timestamp(std::int64_t* at) override;
  void wait_until(const std::int64_t* since, const std::int64_t* duration) override;
  void synchronize() override;

  // Notes that the stream's work may wait for these.
  void will_await(const Signals& signals);
  // Lets the stream's work through closed gates until it has none left.
  void drain() noexcept;

  const std::shared_ptr<DeviceState>& device() const { return device_; }
  const std::string& name() const { return name_; }
  rt::Stream native() const { return native_; }
  bool capturing() const { return rt::capturing(native_); }
  bool awaits_within(std::uintptr_t begin, std::uintptr_t end) const;  // needs device()->mutex
  void forget_within(std::uintptr_t begin, std::uintptr_t end);        // likewise

 private:
  std::string named(const char* what) const;
  void check(rt::Error error, const char* what) const { device_->check(error, named(what)); }

  const std::shared_ptr<DeviceState> device_;
  const std::string name_;
  const bool owned_ = true;
  rt::Stream native_ = nullptr;
  Signals signals_;  // guarded by device()->mutex
};

}  // namespace slacktier::gpu
