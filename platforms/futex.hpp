// Sleeping on a 32-bit word until another thread of this process changes it (Linux futex, private to the process).
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <ctime>

#include "platforms/clock.hpp"

namespace slacktier {

constexpr Nanos kNanosPerSecond = 1'000'000'000;

inline timespec to_timespec(Nanos time) {
  return {static_cast<time_t>(time / kNanosPerSecond), static_cast<long>(time % kNanosPerSecond)};
}

// Sleeps while `word` holds `expected`, until a wake or `deadline` of CLOCK_MONOTONIC (negative: none). False when the
// deadline passed; true says nothing about the word: callers look again.
inline bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, Nanos deadline = -1) noexcept {
  const timespec until = to_timespec(deadline < 0 ? 0 : deadline);
  const long result = ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline < 0 ? nullptr : &until,
                                nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

// Wakes every thread that sleeps on `word`. Safe when the word's memory is already gone: the kernel only compares addresses.
inline void futex_wake_all(const std::atomic<std::uint32_t>* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace slacktier
