// The way back from a stream to the host: the stream posts that it has come to a point, the host waits for that.
//
// One post a step: the host clears the word before the work is launched, Stream::post sets it in stream order. What the
// stream did before is visible to who has seen the word set. A GPU stores the word and wakes nobody: a host function, which
// could, runs 150 to 300 us late. So the host looks at the word while it expects it, and now and then afterwards.
#pragma once

#include <atomic>
#include <cstdint>

#include "platforms/clock.hpp"
#include "platforms/executor.hpp"

namespace slacktier {

// Lives in host memory that the device can map (Device::allocate_host); the word is what devices see.
struct alignas(64) Post {
  std::atomic<std::uint32_t> word{0};  // 0 not yet, 1 posted
  Doorbell* bell = nullptr;            // host only: rung after the word is set, by devices whose posts ring

  // Only while no work that posts is queued.
  void clear() noexcept { word.store(0, std::memory_order_release); }
  bool posted() const noexcept { return word.load(std::memory_order_acquire) != 0; }
  // Looks at the word without leaving the CPU until it is set (true), `patience` has passed, or `stop` is set.
  bool poll(Nanos patience, const std::atomic<bool>& stop) const noexcept;
};
static_assert(sizeof(Post) == 64);

}  // namespace slacktier
