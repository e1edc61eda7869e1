// Signals and gates: the host publishes a signal, a stream awaits it at a gate.
//
// The stream side can only compare one 32-bit word with a value that was baked in at capture, so the epoch cannot live
// in that word. Protocol of one step:
//   1. arm(epoch)           host, before the step is launched; the word is closed (0)
//   2. await(signal)        stream: the gate, waits until the word is open (1); then the layer's work reads `status`
//   3. reset(signal)        stream, in order after that work: the word is closed again
//   publish(epoch, status)  host, any thread, once: refused when `epoch` is not the armed one or it was published before
// A host-side reset, or none, would release later steps early and silently; so reset exists on streams only.
#pragma once

#include <atomic>
#include <cstdint>

namespace slacktier {

enum class StepStatus : std::uint32_t {
  ok = 0,
  read_error = 1,  // a page could not be read, or its stamp was wrong: its rows are delivered as zeros
  timed_out = 2,   // the watchdog opened the gate; rows not yet read are delivered as zeros
  no_buffers = 3,  // pages of abandoned steps hold all buffers; the rows without one are delivered as zeros
};

// Lives in host memory that the device can map; the layout is what kernels and wait-value operations see.
struct alignas(64) Signal {
  std::atomic<std::uint32_t> word{0};    // 0 closed, 1 open: what gates compare
  std::atomic<std::uint32_t> status{0};  // StepStatus of the publish that opened the word
  std::atomic<std::uint64_t> armed{0};   // host only: epoch << 1 | published
  std::atomic<std::int64_t> opened{0};   // host only: the monotonic clock's nanoseconds at that publish

  // Prepares the signal for `epoch` (> 0, increasing). False, and nothing changes, when an epoch as high was armed before or
  // the word is still open: the last step's reset has not run, and would close this step's publish unseen.
  bool arm(std::uint64_t epoch) noexcept;

  // Opens the gate with `status` and wakes CPU waiters. False, and nothing changes, when `epoch` is not the armed one or
  // was published already. Everything written before the call is visible after the gate.
  bool publish(std::uint64_t epoch, StepStatus status) noexcept;
};
static_assert(sizeof(Signal) == 64);

}  // namespace slacktier
