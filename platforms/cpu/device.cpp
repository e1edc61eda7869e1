// The cpu device: real kernels on CPU threads, compute as timed waits.
#include "platforms/device.hpp"

#include <thread>

#include <fmt/format.h>

#include "platforms/backend.hpp"
#include "platforms/cpu/capture.hpp"
#include "platforms/cpu/graph.hpp"
#include "platforms/cpu/stream.hpp"
#include "platforms/error.hpp"
#include "platforms/memory.hpp"

namespace slacktier {
namespace cpu {
namespace {

class CpuBuffer final : public Buffer {
 public:
  explicit CpuBuffer(std::size_t bytes) : memory_(bytes) {
    host_ = device_ = memory_.data();
    bytes_ = memory_.bytes();
  }

 private:
  HostMemory memory_;
};

class CpuDevice final : public Device {
 public:
  DeviceFacts facts() const override {
    return {"cpu",
            "cpu",
            fmt::format("emulated: compute is a timed wait, kernels take the CPU time that they need on one of {} cores",
                        std::thread::hardware_concurrency()),
            "futex",
            "wait",
            {},
            {},
            {},
            false};
  }

  std::unique_ptr<Stream> create_stream(const std::string& name) override {
    return std::make_unique<CpuStream>(state_, name);
  }

  std::unique_ptr<Stream> adopt_stream(std::uintptr_t, const std::string& name) override {
    throw UsageError(fmt::format("cpu device: stream '{}' cannot be another library's: there are none on cpu", name));
  }

  std::unique_ptr<Event> create_event() override { return std::make_unique<CpuEvent>(state_); }

  void begin_capture(Stream& stream) override {
    CpuStream& own = own_stream(stream);
    const std::lock_guard lock(state_->mutex);
    if (own.capture != nullptr) {
      throw UsageError(fmt::format("cpu device: stream '{}' is being captured already; captures do not nest", own.name()));
    }
    Capture::begin(own);
  }

  std::unique_ptr<Graph> end_capture(Stream& stream) override {
    CpuStream& own = own_stream(stream);
    std::vector<Capture::Branch> branches;
    {
      const std::lock_guard lock(state_->mutex);
      if (own.capture == nullptr || own.branch != 0) {
        throw UsageError(fmt::format("cpu device: end_capture on stream '{}', on which no capture began", own.name()));
      }
      const std::shared_ptr<Capture> capture = own.capture;
      branches = capture->end();
    }
    return std::make_unique<CpuGraph>(std::make_shared<GraphBody>(state_, std::move(branches)));
  }

  void load_module(std::span<const ModuleImage> images) override {
    const std::lock_guard lock(state_->mutex);
    bool found = false;
    for (const ModuleImage& image : images) {
      if (image.backend != "cpu") continue;
      found = true;
      for (const KernelEntry& kernel : image.kernels) {
        if (kernel.run == nullptr)
          throw UsageError(fmt::format("cpu device: kernel '{}' of a module has no function", kernel.name));
        const auto [entry, added] = state_->kernels.emplace(kernel.name, kernel.run);
        if (!added && entry->second != kernel.run) {
          throw UsageError(fmt::format("cpu device: two modules bring different kernels named '{}'", kernel.name));
        }
      }
    }
    if (!found) throw UsageError("cpu device: the module has no image for backend 'cpu'");
  }

  std::unique_ptr<Buffer> allocate_device(std::size_t bytes) override { return std::make_unique<CpuBuffer>(bytes); }
  std::unique_ptr<Buffer> allocate_host(std::size_t bytes) override { return std::make_unique<CpuBuffer>(bytes); }
  std::unique_ptr<Buffer> allocate_peer(const std::string& peer, std::size_t) override {
    throw EnvironmentError(
        fmt::format("cpu: the memory of '{}' cannot be reached: a cpu device has no peers; they are for GPUs, with another "
                    "one in the same host",
                    peer));
  }
  bool posts_ring() const override { return true; }
  Nanos host_time(std::int64_t stamp) override { return stamp; }

 private:
  CpuStream& own_stream(Stream& stream) const {
    auto* own = dynamic_cast<CpuStream*>(&stream);
    if (own == nullptr || own->device() != state_) throw UsageError("cpu device: this stream belongs to another device");
    return *own;
  }

  const std::shared_ptr<DeviceState> state_ = std::make_shared<DeviceState>();
};

}  // namespace
}  // namespace cpu

std::unique_ptr<Device> open_cpu_device(std::string_view index, const DeviceOptions& options) {
  if (!index.empty()) throw UsageError(fmt::format("unknown device 'cpu:{}': there is one cpu device, 'cpu'", index));
  if (!options.measured_gate.empty() && options.measured_gate != "futex")
    throw UsageError(fmt::format("{}: measured gate {}, but on cpu a gate is a futex: the file is of another device",
                                 options.measured_from, options.measured_gate));
  if (options.gate != "auto")
    throw UsageError(fmt::format("--gate {}: on cpu a gate is a futex; leave it at auto", options.gate));
  if (options.work != "spin")
    throw UsageError(fmt::format("--work {}: on cpu compute is a timed wait; leave it at spin", options.work));
  return std::make_unique<cpu::CpuDevice>();
}

}  // namespace slacktier
