// A compute device: streams, events, graphs, modules, memory. One interface for "cpu" and the GPU runtimes.
//
// Streams run their operations in order and beside each other. While a capture is active on a stream, operations are
// recorded instead of run; a graph replays them with no further work on the calling thread. Pointers and values given to an
// operation during capture are baked in; user data must outlive the graph.
//
// A failed operation fails the device for good: what is queued is skipped, closed gates let their streams pass, and each
// synchronize() throws. Destroying a stream or graph whose work is in flight drops what has not begun: synchronize first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/clock.hpp"
#include "platforms/post.hpp"
#include "platforms/signal.hpp"

namespace slacktier {

// One kernel as a module brings it. `run` gets the backend's native stream (nullptr on cpu) and the launch's argument
// struct: on cpu it does the work, on a GPU runtime it launches the kernel on the native stream.
struct KernelEntry {
  std::string_view name;
  void (*run)(void* native_stream, const void* args);
};

// The kernels of one folder for one backend ("cpu", "cuda", "hip").
struct ModuleImage {
  std::string_view backend;
  std::span<const KernelEntry> kernels;
};

// Memory with the addresses by which host and device reach it; unmapped when destroyed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  void* host() const { return host_; }      // nullptr for device memory that the host cannot reach
  void* device() const { return device_; }  // nullptr for host memory that the device cannot reach
  std::size_t bytes() const { return bytes_; }

 protected:
  void* host_ = nullptr;
  void* device_ = nullptr;
  std::size_t bytes_ = 0;
};

class Event {
 public:
  virtual ~Event() = default;
};

class Stream;

class Graph {
 public:
  virtual ~Graph() = default;
  // Queues one replay on `stream`; the replay begins after all that the stream holds. One replay at a time per graph.
  virtual void launch(Stream& stream) = 0;
  // Host functions run by one replay, and all operations of one replay.
  virtual std::size_t host_functions() const = 0;
  virtual std::size_t operations() const = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  // Queues kernel `name` of the modules loaded before; `args` is copied. Throws UsageError for an unknown name.
  virtual void launch(std::string_view name, const void* args, std::size_t bytes) = 0;
  template <class Args>
  void launch(std::string_view name, const Args& args) {
    launch(name, &args, sizeof args);
  }
  // Occupies the stream for `duration`, as a layer's compute does, and leaves the CPU free. On cpu the stream keeps a
  // device timeline: a late wake-up of the emulating thread is caught up by the next timed wait and does not accumulate.
  virtual void compute(Nanos duration) = 0;
  virtual void copy(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void fill(void* destination, std::uint8_t value, std::size_t bytes) = 0;
  // Calls `function(user)` in stream order. It must not throw or call the device, and only hands over to other threads.
  virtual void host_function(void (*function)(void*), void* user) = 0;
  virtual void record(Event& event) = 0;
  virtual void wait(Event& event) = 0;
  // The gate: later operations start once the signal's word is open.
  virtual void await(Signal& signal) = 0;
  // Closes the signal's word, in stream order.
  virtual void reset(Signal& signal) = 0;
  // Sets the post's word, in stream order; rings its bell where posts_ring(). No host function.
  virtual void post(Post& post) = 0;
  // Writes the device's time of this point of the stream to `*at` (host-mapped memory), in nanoseconds of one device clock.
  virtual void timestamp(std::int64_t* at) = 0;
  // Holds the stream until the device's clock is `*duration` nanoseconds past `*since`, a time that timestamp() wrote. Both
  // lie in host-mapped memory and are read when the stream comes here; with a duration of 0 it goes on at once.
  virtual void wait_until(const std::int64_t* since, const std::int64_t* duration) = 0;
  // Blocks the caller until all queued work is done. Throws DeviceError when an operation failed.
  virtual void synchronize() = 0;
};

struct DeviceFacts {
  std::string name;     // "cpu", or the GPU's product name
  std::string backend;  // "cpu", "cuda", "hip"
  std::string detail;   // driver and runtime versions, or why a time means nothing
  std::string gate;     // how streams await signals: "futex" on cpu; "spin", "wait-value", "host-node" on GPUs
  std::string work;     // what compute() does with the device, and on how much of it
  // Of GPUs:
  std::string gate_from;        // why that gate: asked for, measured, or the profile's
  std::string architecture;     // "90", "gfx942:sramecc+:xnack-"
  std::string pci;              // "0000:1b:00.0"; empty: not told
  bool unified_memory = false;  // host and GPU share one memory
};

// Choices among a backend's mechanisms.
struct DeviceOptions {
  std::string gate = "auto";  // GPUs: "host-node", "wait-value" or "spin"
  std::string work = "spin";  // GPUs: also "gemm" (a block on every multiprocessor computes) and "stream" (... reads memory)
  // What gate "auto" is: measured on this kind of device, by what measured_from names; empty: the platform profile's.
  std::string measured_gate, measured_from;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual DeviceFacts facts() const = 0;
  virtual std::unique_ptr<Stream> create_stream(const std::string& name) = 0;
  // A stream of another library in this process, by its native handle as a number (a cudaStream_t or hipStream_t). Its owner
  // keeps it alive, captures and destroys it. On cpu, which has none, throws UsageError.
  virtual std::unique_ptr<Stream> adopt_stream(std::uintptr_t native, const std::string& name) = 0;
  virtual std::unique_ptr<Event> create_event() = 0;
  // Captures what is queued on `stream`, and on streams that wait for events recorded in the capture, until end_capture.
  // Every such stream must have been joined back to `stream` by an event. Throws UsageError on a nested capture.
  virtual void begin_capture(Stream& stream) = 0;
  virtual std::unique_ptr<Graph> end_capture(Stream& stream) = 0;
  // Adds the image whose backend is this device's; throws UsageError when `images` has none.
  virtual void load_module(std::span<const ModuleImage> images) = 0;
  // Memory in which the device computes; on cpu ordinary memory (huge pages where granted). Zeroed. Throws EnvironmentError
  // with what is free when there is not enough.
  virtual std::unique_ptr<Buffer> allocate_device(std::size_t bytes) = 0;
  // Memory of another device of the same kind ("cuda:1") that this device reads and writes directly, over NVLink or PCIe.
  // Zeroed. Throws UsageError for a name that is none of another such device; EnvironmentError when that device is not
  // there, cannot be reached from this one, or has no room (with what is free).
  virtual std::unique_ptr<Buffer> allocate_peer(const std::string& peer, std::size_t bytes) = 0;
  // Whether a post rings its bell. Where not, the host has to look at the word.
  virtual bool posts_ring() const = 0;
  // The time on monotonic_clock() of a timestamp() that this device wrote, within a few microseconds on a GPU. It may run
  // work of its own: no gate of the device may be closed. On cpu both are one clock.
  virtual Nanos host_time(std::int64_t stamp) = 0;
  // Page-aligned host memory of exactly `bytes` (rounded to 4 KiB), pinned for and mapped into the device. Zeroed.
  virtual std::unique_ptr<Buffer> allocate_host(std::size_t bytes) = 0;
};

// Opens "cpu" ("cuda:0" and "hip:0" where built and present). Throws UsageError for an unknown name, EnvironmentError for
// a device that is not there, naming what is missing.
std::unique_ptr<Device> open_device(const std::string& name, const DeviceOptions& options = {});

}  // namespace slacktier
