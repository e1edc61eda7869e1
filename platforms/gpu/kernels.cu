#include "platforms/gpu/kernels.hpp"

#include "platforms/kernel.hpp"

namespace slacktier::gpu {
namespace {

// A clock of the whole device that goes on between kernels, in nanoseconds.
SLACKTIER_DEVICE std::int64_t device_clock() {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__AMDGCN__)
  return static_cast<std::int64_t>(__builtin_amdgcn_s_memrealtime()) * 10;  // 100 MHz on gfx9
#elif defined(__CUDA_ARCH__)
  std::int64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
#else
  return 0;
#endif
}

// Words that the host writes and reads meanwhile.
SLACKTIER_DEVICE std::uint32_t load_acquire(const std::uint32_t* word) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__AMDGCN__)
  return __hip_atomic_load(word, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
#elif defined(__CUDA_ARCH__)
  std::uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
#else
  return *word;
#endif
}
SLACKTIER_DEVICE void store_release(std::uint32_t* word, std::uint32_t value) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__AMDGCN__)
  __hip_atomic_store(word, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
#elif defined(__CUDA_ARCH__)
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
#else
  *word = value;
#endif
}

SLACKTIER_KERNEL gate(const std::uint32_t* word) {
  while (load_acquire(word) == 0) {
  }
}

SLACKTIER_KERNEL write(std::uint32_t* word, std::uint32_t value) { store_release(word, value); }

SLACKTIER_KERNEL timestamp(std::int64_t* at) { *at = device_clock(); }

SLACKTIER_KERNEL wait_until(const std::int64_t* since, const std::int64_t* duration) {
  const std::int64_t wait = load_from_host(duration);
  if (wait <= 0) return;
  const std::int64_t end = load_from_host(since) + wait;
  while (device_clock() < end) {
  }
}

SLACKTIER_KERNEL answer_clock(ClockArgs args) {
  for (std::uint32_t round = 1; round <= args.rounds; ++round) {
    std::uint32_t asked = 0;
    while ((asked = load_acquire(args.asked)) < round) {
    }
    if (asked == UINT32_MAX) return;
    args.times[round - 1] = device_clock();
    store_release(args.answered, round);
  }
}

SLACKTIER_KERNEL spin(std::int64_t duration) {
  const std::int64_t end = device_clock() + duration;
  while (device_clock() < end) {
  }
}

SLACKTIER_DEVICE void note_multiprocessor(std::uint32_t* used) {
#if defined(__CUDA_ARCH__)
  if (used == nullptr || kernel_thread() != 0) return;
  std::uint32_t here;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
  if (here < most_multiprocessors) used[here] = 1;
#else
  static_cast<void>(used);
#endif
}

constexpr std::uint32_t tile = 32;  // matrices of tile x tile, 256 threads with four sums each

SLACKTIER_KERNEL multiply(std::int64_t duration, float* sink, std::uint32_t* used) {
  note_multiprocessor(used);
  SLACKTIER_SHARED float a[tile][tile + 1];
  SLACKTIER_SHARED float b[tile][tile + 1];
  SLACKTIER_SHARED std::uint32_t over;
  const std::int64_t end = device_clock() + duration;
  const std::uint32_t column = kernel_thread() % tile, row = kernel_thread() / tile * 4;
  for (std::uint32_t i = 0; i < 4; ++i) {
    a[row + i][column] = static_cast<float>(row + i) * 0.001f;
    b[row + i][column] = static_cast<float>(column) * 0.001f;
  }
  float sum[4] = {};
  do {
    kernel_barrier();
    if (kernel_thread() == 0) over = device_clock() >= end;
    for (std::uint32_t k = 0; k < tile; ++k)
      for (std::uint32_t i = 0; i < 4; ++i) sum[i] += a[row + i][k] * b[k][column];
    kernel_barrier();
  } while (over == 0);
  if (sum[0] + sum[1] + sum[2] + sum[3] < 0) *sink = sum[0];
}

SLACKTIER_KERNEL read_memory(std::int64_t duration, const Bytes16* from, std::size_t n, float* sink, std::uint32_t* used) {
  note_multiprocessor(used);
  SLACKTIER_SHARED std::uint32_t over;
  const std::int64_t end = device_clock() + duration;
  const std::size_t step = std::size_t{kernel_blocks()} * kernel_threads();
  std::size_t at = std::size_t{kernel_block()} * kernel_threads() + kernel_thread();
  std::uint32_t sum = 0;
  do {
    kernel_barrier();
    if (kernel_thread() == 0) over = device_clock() >= end;
    for (int i = 0; i < 16; ++i) {
      const Bytes16 bytes = from[at];
      sum += bytes.word[0] ^ bytes.word[1] ^ bytes.word[2] ^ bytes.word[3];
      at += step;
      if (at >= n) at -= n;
    }
    kernel_barrier();
  } while (over == 0);
  if (sum == 1) *sink = 1;
}

}  // namespace

void launch_gate(void* stream, const std::uint32_t* word) { SLACKTIER_LAUNCH(gate, 1, 1, stream, word); }

void launch_write(void* stream, std::uint32_t* word, std::uint32_t value) {
  SLACKTIER_LAUNCH(write, 1, 1, stream, word, value);
}

void launch_timestamp(void* stream, std::int64_t* at) { SLACKTIER_LAUNCH(timestamp, 1, 1, stream, at); }

void launch_wait_until(void* stream, const std::int64_t* since, const std::int64_t* duration) {
  SLACKTIER_LAUNCH(wait_until, 1, 1, stream, since, duration);
}

void launch_work(void* stream, const WorkArgs& args) {
  switch (args.work) {
    case Work::spin:
      SLACKTIER_LAUNCH(spin, 1, 1, stream, args.duration);
      break;
    case Work::gemm:
      SLACKTIER_LAUNCH(multiply, args.multiprocessors, 256, stream, args.duration, args.sink, args.used);
      break;
    case Work::stream:
      SLACKTIER_LAUNCH(read_memory, args.multiprocessors, 1024, stream, args.duration,
                       reinterpret_cast<const Bytes16*>(args.scratch), args.scratch_bytes / sizeof(Bytes16), args.sink,
                       args.used);
      break;
  }
}

void launch_clock(void* stream, const ClockArgs& args) { SLACKTIER_LAUNCH(answer_clock, 1, 1, stream, args); }

int kernels_loadable() {
#if defined(SLACKTIER_GPU_HIP)
  hipFuncAttributes attributes;
  return hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&gate));
#else
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, gate);
#endif
}

}  // namespace slacktier::gpu
