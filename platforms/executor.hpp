// The only place that starts threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "platforms/clock.hpp"

namespace slacktier {

// A running thread. The destructor joins; what the body throws is kept and rethrown by join().
class Task {
 public:
  virtual ~Task() = default;
  virtual void join() = 0;
};

struct TaskOptions {
  int cpu = -1;  // pin to this CPU; -1: free
};

class Executor {
 public:
  virtual ~Executor() = default;
  // Starts `body` on a thread named `name` (the first 15 characters are visible in top and gdb).
  // Throws std::system_error when the thread or the pin is refused.
  virtual std::unique_ptr<Task> start(const std::string& name, std::function<void()> body, TaskOptions options = {}) = 0;
};

Executor& thread_executor();

// A counter that one side rings and the other waits on without polling (futex). ring() is safe in device callbacks: it
// allocates nothing and never throws.
class Doorbell {
 public:
  void ring() noexcept;
  // Waits until the count differs from `seen` and returns it; returns `seen` when `timeout` passes first
  // (negative: wait for ever).
  std::uint32_t wait(std::uint32_t seen, Nanos timeout = -1) const noexcept;
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }

 private:
  alignas(64) std::atomic<std::uint32_t> count_{0};
};

}  // namespace slacktier
