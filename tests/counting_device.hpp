// A device that counts what its streams are asked to do; everything else is the device's below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "platforms/device.hpp"

namespace slacktier::testing {

// Calls since the last clear. Operations queued in a capture count as any other.
struct DeviceCalls {
  std::size_t operations = 0, graph_launches = 0, synchronizes = 0, allocations = 0;
};

class CountingStream final : public Stream {
 public:
  CountingStream(std::unique_ptr<Stream> below, DeviceCalls& calls) : below_(std::move(below)), calls_(calls) {}
  Stream& below() { return *below_; }

  void launch(std::string_view name, const void* args, std::size_t bytes) override { count().launch(name, args, bytes); }
  void compute(Nanos duration) override { count().compute(duration); }
  void copy(void* to, const void* from, std::size_t bytes) override { count().copy(to, from, bytes); }
  void fill(void* to, std::uint8_t value, std::size_t bytes) override { count().fill(to, value, bytes); }
  void host_function(void (*function)(void*), void* user) override { count().host_function(function, user); }
  void record(Event& event) override { count().record(event); }
  void wait(Event& event) override { count().wait(event); }
  void await(Signal& signal) override { count().await(signal); }
  void reset(Signal& signal) override { count().reset(signal); }
  void post(Post& post) override { count().post(post); }
  void timestamp(std::int64_t* at) override { count().timestamp(at); }
  void wait_until(const std::int64_t* since, const std::int64_t* duration) override { count().wait_until(since, duration); }
  void synchronize() override {
    ++calls_.synchronizes;
    below_->synchronize();
  }

 private:
  Stream& count() {
    ++calls_.operations;
    return *below_;
  }
  std::unique_ptr<Stream> below_;
  DeviceCalls& calls_;
};

class CountingGraph final : public Graph {
 public:
  CountingGraph(std::unique_ptr<Graph> below, DeviceCalls& calls) : below_(std::move(below)), calls_(calls) {}
  void launch(Stream& stream) override {
    ++calls_.graph_launches;
    below_->launch(dynamic_cast<CountingStream&>(stream).below());
  }
  std::size_t host_functions() const override { return below_->host_functions(); }
  std::size_t operations() const override { return below_->operations(); }

 private:
  std::unique_ptr<Graph> below_;
  DeviceCalls& calls_;
};

class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Device& below) : below_(below) {}
  DeviceCalls calls;

  DeviceFacts facts() const override { return below_.facts(); }
  std::unique_ptr<Stream> create_stream(const std::string& name) override {
    return std::make_unique<CountingStream>(below_.create_stream(name), calls);
  }
  std::unique_ptr<Stream> adopt_stream(std::uintptr_t native, const std::string& name) override {
    return std::make_unique<CountingStream>(below_.adopt_stream(native, name), calls);
  }
  std::unique_ptr<Event> create_event() override { return below_.create_event(); }
  void begin_capture(Stream& stream) override { below_.begin_capture(dynamic_cast<CountingStream&>(stream).below()); }
  std::unique_ptr<Graph> end_capture(Stream& stream) override {
    return std::make_unique<CountingGraph>(below_.end_capture(dynamic_cast<CountingStream&>(stream).below()), calls);
  }
  void load_module(std::span<const ModuleImage> images) override { below_.load_module(images); }
  std::unique_ptr<Buffer> allocate_device(std::size_t bytes) override {
    ++calls.allocations;
    return below_.allocate_device(bytes);
  }
  std::unique_ptr<Buffer> allocate_peer(const std::string& peer, std::size_t bytes) override {
    ++calls.allocations;
    return below_.allocate_peer(peer, bytes);
  }
  bool posts_ring() const override { return below_.posts_ring(); }
  Nanos host_time(std::int64_t stamp) override { return below_.host_time(stamp); }
  std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override {
    ++calls.allocations;
    return below_.allocate_host(bytes);
  }

 private:
  Device& below_;
};

}  // namespace slacktier::testing
