// A recorded event as the emulation sees it, and the time of a stream.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "platforms/clock.hpp"
#include "platforms/futex.hpp"

namespace slacktier::cpu {

// A place in the work of one stream or graph branch that is reached again and again: with sequence number 1, then 2, and so
// on.
struct alignas(64) Point {
  std::atomic<std::uint32_t> reached{0};   // the last sequence number
  std::atomic<std::uint32_t> sleepers{0};  // threads in wait, so that reach() spares the system call when there are none
  std::atomic<Nanos> time{0};              // device time of the last arrival

  bool has(std::uint32_t sequence) const noexcept {
    // Signed difference: right across a wrap of the 32 bits.
    return static_cast<std::int32_t>(reached.load(std::memory_order_seq_cst) - sequence) >= 0;
  }

  void reach(std::uint32_t sequence, Nanos at) noexcept {
    time.store(at, std::memory_order_relaxed);
    reached.store(sequence, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(&reached);
  }

  // Sleeps until reach(sequence) or `deadline` (negative: none); callers look again.
  void sleep(std::uint32_t sequence, Nanos deadline) noexcept {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t now = reached.load(std::memory_order_seq_cst);
    if (static_cast<std::int32_t>(now - sequence) < 0) futex_wait(reached, now, deadline);
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }
};

// The device time of one stream: where the emulated device is, which the emulating thread follows late, never early.
// Times are of monotonic_clock().
class Timeline {
 public:
  Nanos at() const { return at_; }
  // The next operation cannot begin before `time`: it was queued then, or a gate or event let the stream on then.
  void not_before(Nanos time) { at_ = std::max(at_, time); }
  // An operation ran for `duration`. Returns its end. Being late here is nothing that the next operation inherits.
  Nanos advance(Nanos duration) { return at_ += duration; }

 private:
  Nanos at_ = 0;
};

}  // namespace slacktier::cpu
