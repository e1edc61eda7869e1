#include "platforms/signal.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace slacktier {

bool Signal::publish(std::uint64_t epoch, StepStatus new_status) noexcept {
  std::uint64_t expected = epoch << 1;
  if (!armed.compare_exchange_strong(expected, expected | 1, std::memory_order_acq_rel)) return false;
  status.store(static_cast<std::uint32_t>(new_status), std::memory_order_relaxed);
  word.store(1, std::memory_order_release);
  // CPU gates sleep on the word; GPU gates poll it and the call costs them nothing but this system call.
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  return true;
}

}  // namespace slacktier
