#include "platforms/gpu/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "platforms/gpu/stream.hpp"
#include "platforms/host.hpp"
#include "platforms/memory.hpp"
#include "platforms/quantity.hpp"

namespace slacktier::gpu {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t chunk = std::size_t{1} << 30;            // of a registration
constexpr std::size_t worth_a_thread = std::size_t{64} << 20;  // bytes to bring in

std::size_t whole_pages(std::size_t bytes) { return (bytes + page - 1) / page * page; }

// Memory of the device, or of another one that it has access to.
class DeviceBuffer final : public Buffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceState> device, std::size_t bytes, int where)
      : device_(std::move(device)), where_(where) {
    if (bytes == 0) return;
    const std::string place = where_ == device_->index ? fmt::format("{} ({})", device_->name, device_->product)
                                                       : fmt::format("{}:{}", rt::backend, where_);
    device_->check(rt::SetDevice(where_), "choosing the device");
    try {
      std::size_t free = 0, total = 0;
      device_->check(rt::MemGetInfo(&free, &total), "asking for free memory");
      // What no device of this size can give is never asked for: runtimes answer that in ways of their own.
      rt::Error error = rt::out_of_memory;
      if (bytes <= total) {
        bytes_ = whole_pages(bytes);
        error = rt::Malloc(&device_address(), bytes_);
      }
      if (error == rt::out_of_memory) {
        rt::last_error();
        throw EnvironmentError(fmt::format(
            "{}: {} of device memory are needed, {} of {} are free. Give caches fewer rows and keep fewer tables "
            "there, or end what else uses this GPU",
            place, bytes_text(bytes), bytes_text(free), bytes_text(total)));
      }
      device_->check(error, "allocating device memory");
      zero();
    } catch (...) {
      rt::SetDevice(device_->index);
      throw;
    }
    device_->enter();
  }
  ~DeviceBuffer() override { release(); }

 private:
  void*& device_address() { return Buffer::device_; }

  // On a stream of its own: the default one would wait for gates of others.
  void zero() {
    rt::Stream stream = nullptr;
    rt::Error error = rt::create_stream(&stream);
    if (error == rt::success) {
      error = rt::MemsetAsync(device_address(), 0, bytes_, stream);
      const rt::Error done = rt::StreamSynchronize(stream);
      if (error == rt::success) error = done;
      rt::StreamDestroy(stream);
    }
    if (error == rt::success) return;
    release();
    device_->check(error, "zeroing device memory");
  }
  void release() noexcept {
    if (device_address() == nullptr) return;
    rt::SetDevice(where_);
    rt::Free(device_address());
    rt::SetDevice(device_->index);
    device_address() = nullptr;
  }

  const std::shared_ptr<DeviceState> device_;
  const int where_;
};

// Touches every page, so that registering finds them all.
void bring_in(std::byte* base, std::size_t bytes) {
  const auto touch = [](std::byte* from, std::size_t n) {
#if defined(MADV_POPULATE_WRITE)
    if (::madvise(from, n, MADV_POPULATE_WRITE) == 0) return;
#endif
    for (std::size_t at = 0; at < n; at += page) *reinterpret_cast<volatile std::byte*>(from + at) = std::byte{0};
  };
  const std::size_t tasks = std::min<std::size_t>(read_host_facts().cores, bytes / worth_a_thread);
  if (tasks <= 1) return touch(base, bytes);
  const std::size_t part = whole_pages(bytes / tasks);
  std::vector<std::unique_ptr<Task>> running;
  for (std::size_t at = 0; at < bytes; at += part)
    running.push_back(thread_executor().start("bring-in", [=] { touch(base + at, std::min(part, bytes - at)); }));
  for (const auto& task : running) task->join();
}

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::shared_ptr<DeviceState> device, std::size_t bytes) : device_(std::move(device)), memory_(bytes) {
    bytes_ = memory_.bytes();
    host_ = memory_.data();
    if (bytes_ == 0) return;
    device_->enter();
    bring_in(base(), bytes_);
    bool joined = false;
    try {
      joined = register_by(chunk) || register_by(bytes_);
    } catch (...) {
      unregister();  // nothing of it may stay pinned
      throw;
    }
    if (!joined) {
      throw EnvironmentError(
          fmt::format("{} ({}): {} of host memory got device addresses in pieces that do not join; this driver cannot map "
                      "so much at once",
                      device_->name, device_->product, bytes_text(bytes_)));
    }
    Buffer::device_ = base() + to_device_;
    const std::lock_guard lock(device_->mutex);
    const auto begin = reinterpret_cast<std::uintptr_t>(host_);
    device_->host_ranges[begin] = {begin + bytes_, to_device_};
  }

  ~HostBuffer() override {
    if (bytes_ == 0) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(host_);
    rt::SetDevice(device_->index);
    let_pass(begin, begin + bytes_);
    unregister();
  }

 private:
  std::byte* base() const { return static_cast<std::byte*>(host_); }

  // False when the chunks' device addresses are not as far apart as their host addresses.
  bool register_by(std::size_t size) {
    for (std::size_t at = 0; at < bytes_; at += size) {
      const std::size_t n = std::min(size, bytes_ - at);
      if (const rt::Error error = rt::register_host(base() + at, n); error != rt::success) {
        rt::last_error();
        unregister();
        const auto limit = read_host_facts().memlock_soft;
        throw EnvironmentError(fmt::format(
            "{} ({}): the driver refuses to register {} of host memory ({} of {} are registered): {}. Locked memory of this "
            "process is limited to {} (ulimit -l); in a container, its memory limit counts as well",
            device_->name, device_->product, bytes_text(n), bytes_text(at), bytes_text(bytes_), rt::text(error),
            limit ? bytes_text(*limit) : "nothing"));
      }
      registered_.push_back(base() + at);
      void* address = nullptr;
      device_->check(rt::HostGetDevicePointer(&address, base() + at, 0u), "mapping host memory");
      const std::ptrdiff_t to_device = static_cast<std::byte*>(address) - (base() + at);
      if (at > 0 && to_device != to_device_) {
        unregister();
        return false;
      }
      to_device_ = to_device;
    }
    return true;
  }

  void unregister() noexcept {
    for (std::byte* at : registered_) rt::HostUnregister(at);
    registered_.clear();
  }

  // No stream may look at this memory any more: those that wait for signals in it are let through.
  void let_pass(std::uintptr_t begin, std::uintptr_t end) {
    for (;;) {
      GpuStream* waiting = nullptr;
      {
        const std::lock_guard lock(device_->mutex);
        for (GpuStream* stream : device_->streams)
          if (stream->awaits_within(begin, end)) waiting = stream;
        if (waiting == nullptr) {
          device_->host_ranges.erase(begin);
          return;
        }
      }
      waiting->drain();
      const std::lock_guard lock(device_->mutex);
      waiting->forget_within(begin, end);
    }
  }

  const std::shared_ptr<DeviceState> device_;
  HostMemory memory_;
  std::vector<std::byte*> registered_;
  std::ptrdiff_t to_device_ = 0;
};

}  // namespace

std::unique_ptr<Buffer> make_device_buffer(std::shared_ptr<DeviceState> device, std::size_t bytes) {
  const int index = device->index;
  return std::make_unique<DeviceBuffer>(std::move(device), bytes, index);
}

std::unique_ptr<Buffer> make_peer_buffer(std::shared_ptr<DeviceState> device, const std::string& peer, std::size_t bytes) {
  const std::string prefix = std::string(rt::backend) + ":";
  if (!peer.starts_with(prefix))
    throw UsageError(
        fmt::format("{}: peer '{}': another {} device is needed, such as {}1", device->name, peer, rt::backend, prefix));
  const int index = parse_index(std::string_view(peer).substr(prefix.size()));
  if (index == device->index)
    throw UsageError(fmt::format("{}: peer '{}' is the device itself: its own memory is source hbm", device->name, peer));
  device->enter();
  int devices = 0, reachable = 0;
  device->check(rt::GetDeviceCount(&devices), "counting devices");
  if (index >= devices)
    throw EnvironmentError(fmt::format("{}: peer {}: there {} {} GPU{} here; a peer is another one in the same host",
                                       device->name, peer, devices == 1 ? "is" : "are", devices, devices == 1 ? "" : "s"));
  device->check(rt::DeviceCanAccessPeer(&reachable, device->index, index), "asking for peer access");
  if (reachable == 0)
    throw EnvironmentError(
        fmt::format("{}: the memory of {} cannot be read from it: there is no peer access between the two over NVLink or "
                    "PCIe (nvidia-smi topo -p2p r, or rocm-smi --showtopo, shows what there is)",
                    device->name, peer));
  const rt::Error error = rt::DeviceEnablePeerAccess(index, 0u);
  if (error != SLACKTIER_RT(ErrorPeerAccessAlreadyEnabled)) device->check(error, "enabling peer access");
  rt::last_error();
  return std::make_unique<DeviceBuffer>(std::move(device), bytes, index);
}

std::unique_ptr<Buffer> make_host_buffer(std::shared_ptr<DeviceState> device, std::size_t bytes) {
  return std::make_unique<HostBuffer>(std::move(device), bytes);
}

}  // namespace slacktier::gpu
