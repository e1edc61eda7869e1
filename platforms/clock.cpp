#include "platforms/clock.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <ctime>

#include "platforms/error.hpp"
#include "platforms/futex.hpp"

namespace slacktier {
namespace {

class MonotonicClock final : public Clock {
 public:
  Nanos now() const override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<Nanos>(time.tv_sec) * kNanosPerSecond + time.tv_nsec;
  }

  void sleep_until(Nanos deadline) const override {
    // Slack is a property of each thread; threads of our executor have it set already, others get it at their first sleep.
    thread_local const int slack_set = ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
    static_cast<void>(slack_set);
    if (deadline <= 0) return;
    const timespec until = to_timespec(deadline);
    int result = 0;
    while ((result = ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr)) == EINTR) {
    }
    if (result != 0) {
      errno = result;
      throw_errno("clock_nanosleep");
    }
  }
};

}  // namespace

const Clock& monotonic_clock() {
  static const MonotonicClock clock;
  return clock;
}

Nanos process_cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return Nanos{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace slacktier
