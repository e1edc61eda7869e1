// The GPUs' kernels at 32 lanes.
#define SLACKTIER_EMULATED_LANES 32
#include "tests/unit/tier/emulated_kernels.hpp"

#include <cstdint>

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("kernels of 32 lanes deliver what the definition says", "[kernels_32]") {
  if (!emulation_runs()) return skip_test("this sanitizer does not follow fibers");
  check_kernels(*open_emulated(), true);
}

namespace {

struct Turn {
  std::uint32_t* order;
  std::uint32_t threads;
};

// Neighbours exchange through shared memory; with the barrier left out, whoever comes first reads what is not there yet.
template <bool with_barrier>
SLACKTIER_KERNEL reverse(Turn turn) {
  SLACKTIER_SHARED std::uint32_t shared[256];
  shared[kernel_thread()] = kernel_thread() + 1000 * (kernel_block() + 1);
  if (with_barrier) kernel_barrier();
  turn.order[kernel_block() * kernel_threads() + kernel_thread()] = shared[kernel_threads() - 1 - kernel_thread()];
}

template <bool with_barrier>
std::uint32_t wrong_reversals(std::uint32_t threads) {
  std::vector<std::uint32_t> out(3 * threads);
  const Turn turn{out.data(), threads};
  const auto kernel = reverse<with_barrier>;
  SLACKTIER_LAUNCH(kernel, 3, threads, nullptr, turn);
  std::uint32_t wrong = 0;
  for (std::uint32_t block = 0; block < 3; ++block)
    for (std::uint32_t t = 0; t < threads; ++t) wrong += out[block * threads + t] != threads - 1 - t + 1000 * (block + 1);
  return wrong;
}

SLACKTIER_KERNEL half_waits(std::uint32_t* done) {
  for (std::uint32_t i = 0; i <= kernel_thread() % 2; ++i) kernel_barrier();
  ++*done;
}

}  // namespace

TEST_CASE("the emulation orders threads by barriers only", "[kernels_32]") {
  if (!emulation_runs()) return skip_test("this sanitizer does not follow fibers");
  for (const std::uint32_t threads : {256u, 64u, 32u, 33u, 7u, 1u}) {
    CHECK(wrong_reversals<true>(threads) == 0);
    if (threads > 1) CHECK(wrong_reversals<false>(threads) > 0);
  }
  // Threads that have returned are not waited for, as on GPUs.
  std::uint32_t done = 0;
  SLACKTIER_LAUNCH(half_waits, 2, 48, nullptr, &done);
  CHECK(done == 96);
}
