// What kernel sources are written in: one text for CUDA, for HIP, and for the CPU (kernel_emulation.hpp), where tests run it
// at either lane width without a GPU. Only .cu files and those tests include this.
//
// Kernels never assume how many lanes run in step: what threads of a block share passes a kernel_barrier().
#pragma once

#include <cstdint>
#include <cstring>

#if defined(SLACKTIER_EMULATED_LANES)

#include "platforms/kernel_emulation.hpp"

#else

#if defined(SLACKTIER_GPU_HIP)
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

#define SLACKTIER_KERNEL static __global__ void
#define SLACKTIER_DEVICE static __device__ __forceinline__
#define SLACKTIER_SHARED __shared__
#define SLACKTIER_VECTOR(bytes) alignas(bytes)

SLACKTIER_DEVICE std::uint32_t kernel_thread() { return threadIdx.x; }
SLACKTIER_DEVICE std::uint32_t kernel_threads() { return blockDim.x; }
SLACKTIER_DEVICE std::uint32_t kernel_block() { return blockIdx.x; }
SLACKTIER_DEVICE std::uint32_t kernel_blocks() { return gridDim.x; }
SLACKTIER_DEVICE void kernel_barrier() { __syncthreads(); }

// Launches `kernel` on the native stream; a refused launch shows in the runtime's last error.
#define SLACKTIER_LAUNCH(kernel, blocks, threads, native_stream, ...) \
  kernel<<<(blocks), (threads), 0, static_cast<SLACKTIER_NATIVE_STREAM>(native_stream)>>>(__VA_ARGS__)
#if defined(SLACKTIER_GPU_HIP)
#define SLACKTIER_NATIVE_STREAM hipStream_t
#else
#define SLACKTIER_NATIVE_STREAM cudaStream_t
#endif

#endif

namespace slacktier {

// Vectors that one instruction loads or stores. An address must be a multiple of their size.
struct SLACKTIER_VECTOR(8) Bytes8 {
  std::uint32_t word[2];
};
struct SLACKTIER_VECTOR(16) Bytes16 {
  std::uint32_t word[4];
};

SLACKTIER_DEVICE float float_of_bits(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
SLACKTIER_DEVICE std::uint32_t bits_of_float(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
// Words of host memory that the host writes anew between kernels, or while they run: read where the host wrote them.
//
// A replay's kernels run after a gate that acquired what the host had published, so the memory models forbid older values to
// plain loads as well. A load at system scope does not lean on that: it is carried out at the memory's home, so no line that
// a cache of the device kept from an earlier replay can serve it. Each word is loaded once, so no cache is missed for it.
template <class Word>
SLACKTIER_DEVICE Word load_from_host(const Word* word) {
#if defined(__HIP_DEVICE_COMPILE__) && defined(__AMDGCN__)
  return __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#elif defined(__CUDA_ARCH__)
  Word value;
  if constexpr (sizeof(Word) == 8)
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  else
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
  return value;
#else
  return *word;
#endif
}
SLACKTIER_DEVICE bool multiple_of(const void* address, std::uint32_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(address) & (bytes - 1)) == 0;
}

}  // namespace slacktier
