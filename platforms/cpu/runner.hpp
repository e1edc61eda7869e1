// Carries operations out on the calling thread, keeping the stream's device time; and what all runners of a device share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platforms/cpu/operation.hpp"

namespace slacktier::cpu {

class Runner;

// A stop that comes between a runner's last look and its sleep is seen after this long; every other one wakes it at once.
constexpr Nanos kLookAgain = 50'000'000;

// State of one device, shared by its streams and graphs, which may outlive the Device object.
//
// The first failure of an operation fails the device for good, as on a GPU: what is queued is skipped, closed gates let
// their streams pass, and every synchronize() throws that failure. So no thread is left waiting for work that will never
// come.
class DeviceState {
 public:
  // Guards `kernels`, all captures, and the host side of events.
  std::mutex mutex;
  std::map<std::string, void (*)(void*, const void*), std::less<>> kernels;

  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  void fail(const std::string& what) noexcept;
  void throw_if_failed() const;

 private:
  friend class Runner;
  mutable std::mutex failure_mutex_;  // guards the two below; never held while another lock is taken
  std::string failure_;
  std::vector<Runner*> runners_;
  std::atomic<bool> failed_{false};
};

// A captured graph, as the stream that launches it sees it.
class Replayable {
 public:
  virtual ~Replayable() = default;
  // Runs one replay, the origin's branch on `origin`. Returns once all branches are done.
  virtual void replay(Runner& origin) = 0;
};

// One thread runs operations on it; stop() and interrupt() may come from any other.
class Runner {
 public:
  Runner(std::shared_ptr<DeviceState> device, std::string name);
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // Runs `operation`, or skips it when skipping(). Edges within a replay use its `sequence`, others their own.
  void run(const Operation& operation, std::uint32_t sequence) noexcept;
  void wait(Point& point, std::uint32_t sequence) noexcept;

  // From now on only records are carried out, so that others who wait for them get on. Wakes a wait in progress.
  void stop() noexcept;
  void interrupt() const noexcept;
  // A replay that stops makes the runners of its branches skip while the flag is set. Set by the running thread only.
  void set_replay_stop(const std::atomic<bool>* flag) noexcept { replay_stop_ = flag; }
  bool skipping() const noexcept;

  Timeline& timeline() noexcept { return timeline_; }
  DeviceState& device() const noexcept { return *device_; }
  const std::string& name() const noexcept { return name_; }

 private:
  void carry_out(const Operation& operation);
  void await(Signal& signal) noexcept;

  std::shared_ptr<DeviceState> device_;
  std::string name_;
  Timeline timeline_;
  std::atomic<bool> stopped_{false};
  const std::atomic<bool>* replay_stop_ = nullptr;
  std::atomic<const std::atomic<std::uint32_t>*> asleep_on_{nullptr};
};

}  // namespace slacktier::cpu
