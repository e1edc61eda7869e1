// What one GPU's device, streams, graphs and buffers share. It outlives the Device object as long as one of them does.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/device.hpp"
#include "platforms/gpu/kernels.hpp"
#include "platforms/gpu/runtime.hpp"

namespace slacktier::gpu {

class GpuStream;

// How a stream awaits a signal.
enum class Gate {
  spin,        // a one-thread kernel that looks at the word
  wait_value,  // a stream memory operation
  host_node,   // a host function that sleeps until the word changes
};
const char* to_string(Gate gate);

// The number of the GPU that "backend:N" names by `index`, its N. Throws UsageError for anything else.
int parse_index(std::string_view index);

// Signals that some work in flight may wait for.
using Signals = std::set<Signal*>;

struct DeviceState {
  int index = 0;
  std::string name;  // "cuda:0"
  std::string product, architecture, pci;
  bool unified_memory = false;
  std::uint32_t multiprocessors = 1;
  Gate gate = Gate::spin;
  std::string gate_from;
  Work work = Work::spin;
  const std::byte* scratch = nullptr;  // of Work::stream
  std::size_t scratch_bytes = 0;
  float* sink = nullptr;

  std::mutex mutex;  // guards all below
  std::map<std::string, void (*)(void*, const void*), std::less<>> kernels;
  struct HostRange {
    std::uintptr_t end = 0;
    std::ptrdiff_t to_device = 0;  // what is added to a host address
  };
  std::map<std::uintptr_t, HostRange> host_ranges;  // by begin
  std::set<GpuStream*> streams;
  std::map<unsigned long long, Signals> captured;  // by capture

  // What compute() launches for `duration` nanoseconds.
  WorkArgs work_args(std::int64_t duration) const;
  // Makes this device the calling thread's. Every entry from outside does it.
  void enter() const;
  // Throws DeviceError with the runtime's words when `error` is one; `what` names the call and its object.
  void check(rt::Error error, const std::string& what) const;
  // The device's address of host-mapped memory. Throws UsageError when it is in no host buffer of this device.
  void* mapped(const void* host, std::size_t bytes, const char* what);
};

}  // namespace slacktier::gpu
