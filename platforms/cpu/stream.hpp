// A stream of the cpu device: a ring of queued operations and the thread that runs them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platforms/cpu/runner.hpp"
#include "platforms/device.hpp"
#include "platforms/executor.hpp"

namespace slacktier::cpu {

class Capture;

class CpuEvent final : public Event {
 public:
  explicit CpuEvent(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {}

  const std::shared_ptr<DeviceState> device;
  // All below: guarded by device->mutex; they tell of the latest record.
  std::shared_ptr<Point> point;     // null: never recorded
  std::uint32_t sequence = 0;       // 0 in a capture: the replay brings its own
  std::weak_ptr<Capture> capture;   // where it was recorded
  bool captured = false;            // it was in a capture, which may have ended since
  std::size_t branch = 0;           // in a capture: the recording branch,
  std::vector<std::size_t> before;  // and what had happened before (Capture::Branch::before)
};

// Destroying a stream drops what it has not begun and lets it through closed gates; synchronize first to have it done.
class CpuStream final : public Stream {
 public:
  CpuStream(std::shared_ptr<DeviceState> device, const std::string& name);
  ~CpuStream() override;

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

  void launch_graph(std::shared_ptr<Replayable> graph);
  const std::shared_ptr<DeviceState>& device() const { return device_; }
  const std::string& name() const { return name_; }

  // Guarded by device()->mutex: the capture that records this stream, and its branch there.
  std::shared_ptr<Capture> capture;
  std::size_t branch = 0;

 private:
  // Lets `describe` fill in an operation at the end of the ring, or of the capture in progress. Needs device()->mutex.
  template <class Describe>
  void add(OperationKind kind, const Describe& describe);
  Operation& grow_ring();
  void work();

  const std::shared_ptr<DeviceState> device_;
  const std::string name_;
  Runner runner_;

  std::mutex mutex_;  // guards the ring and the two flags; taken after device_->mutex
  std::condition_variable more_;
  std::condition_variable idle_;
  std::vector<Operation> ring_;  // a power of two of slots, doubled when full
  std::size_t first_ = 0;
  std::size_t queued_ = 0;
  bool running_ = false;
  bool closing_ = false;
  std::unique_ptr<Task> thread_;
};

}  // namespace slacktier::cpu
