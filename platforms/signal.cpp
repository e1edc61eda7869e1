#include "platforms/signal.hpp"

#include <cstdint>

#include "platforms/clock.hpp"
#include "platforms/futex.hpp"

namespace slacktier {

bool Signal::arm(std::uint64_t epoch) noexcept {
  if (epoch <= armed.load(std::memory_order_acquire) >> 1 || word.load(std::memory_order_acquire) != 0) return false;
  armed.store(epoch << 1, std::memory_order_release);
  return true;
}

bool Signal::publish(std::uint64_t epoch, StepStatus new_status) noexcept {
  std::uint64_t expected = epoch << 1;
  if (epoch == 0 || !armed.compare_exchange_strong(expected, expected | 1, std::memory_order_acq_rel)) return false;
  status.store(static_cast<std::uint32_t>(new_status), std::memory_order_relaxed);
  opened.store(monotonic_clock().now(), std::memory_order_relaxed);
  word.store(1, std::memory_order_release);
  // CPU gates sleep on the word; GPU gates poll it and the call costs them nothing but this system call.
  futex_wake_all(&word);
  return true;
}

}  // namespace slacktier
