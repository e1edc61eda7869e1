// The one clock of live code. Harness and tier code reads time and sleeps through this interface only.
#pragma once

#include <cstdint>

namespace slacktier {

using Nanos = std::int64_t;  // nanoseconds; a point in time is since an arbitrary fixed origin

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanos now() const = 0;
  // Returns at `deadline` or as soon after it as the system wakes the thread; at once if it has passed.
  virtual void sleep_until(Nanos deadline) const = 0;
};

// CLOCK_MONOTONIC. sleep_until leaves the CPU free and wakes with the smallest timer slack that the kernel grants.
const Clock& monotonic_clock();

// CPU time that all threads of this process have used.
Nanos process_cpu_time();

}  // namespace slacktier
