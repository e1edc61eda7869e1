// The backend's own kernels. `stream` is the native stream, addresses are the device's. Launch errors show in
// rt::last_error().
#pragma once

#include <cstddef>
#include <cstdint>

namespace slacktier::gpu {

// What a layer's compute does with the device while it lasts.
enum class Work {
  spin,    // one block looks at the clock
  gemm,    // a block on every multiprocessor multiplies small matrices
  stream,  // a block on every multiprocessor reads device memory
};

// Waits until the word is not 0; what was written before the word is visible to later kernels.
void launch_gate(void* stream, const std::uint32_t* word);
// Writes `value` to the word, after all that earlier kernels wrote.
void launch_write(void* stream, std::uint32_t* word, std::uint32_t value);
// Writes the device clock, in nanoseconds.
void launch_timestamp(void* stream, std::int64_t* at);

inline constexpr std::uint32_t most_multiprocessors = 4096;

// Waits until the device clock is `*duration` past `*since`. Addresses are the device's, of words that the host wrote before
// the launch or an earlier kernel wrote.
void launch_wait_until(void* stream, const std::int64_t* since, const std::int64_t* duration);

struct WorkArgs {
  Work work = Work::spin;
  std::int64_t duration = 0;           // nanoseconds
  std::uint32_t multiprocessors = 1;   // of the device
  const std::byte* scratch = nullptr;  // for stream: device memory of scratch_bytes
  std::size_t scratch_bytes = 0;       // a multiple of 16
  float* sink = nullptr;               // one value, written for nobody
  // Of gemm and stream: the word of each multiprocessor that runs a block is set to 1 (CUDA). most_multiprocessors words.
  std::uint32_t* used = nullptr;
};
void launch_work(void* stream, const WorkArgs& args);

// For matching clocks: answers `rounds` questions. Each begins when *asked reaches its number (from 1); then the device
// clock is written to times[number - 1] and the number to *answered. `asked` = UINT32_MAX ends it.
struct ClockArgs {
  const std::uint32_t* asked;
  std::uint32_t* answered;
  std::int64_t* times;
  std::uint32_t rounds;
};
void launch_clock(void* stream, const ClockArgs& args);

// Whether the build has code for the current device; a runtime error otherwise.
int kernels_loadable();

}  // namespace slacktier::gpu
