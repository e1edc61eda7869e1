// Kernels on the CPU, for tests without a GPU: every thread of a block is a fiber, blocks run one after the other. A fiber
// runs until its next barrier. The order of fibers is by lanes: lane 0 of all warps, then lane 1, and so on, backwards in
// every second block, so that threads which rely on their warp's running in step, or on each other's order, go wrong.
//
// Everything here is private to the including source: two of them may emulate different widths.
#pragma once

#if !defined(SLACKTIER_EMULATED_LANES)
#error "set SLACKTIER_EMULATED_LANES to the lanes of a warp: 32 (NVIDIA) or 64 (AMD)"
#endif

#include <ucontext.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#define SLACKTIER_KERNEL static void
#define SLACKTIER_DEVICE [[maybe_unused]] static inline
#define SLACKTIER_SHARED static
#define SLACKTIER_VECTOR(bytes) __attribute__((aligned(bytes), may_alias))

namespace slacktier {
namespace {

class EmulatedGrid {
 public:
  static constexpr std::uint32_t lanes = SLACKTIER_EMULATED_LANES;

  std::uint32_t thread = 0, threads = 0, block = 0, blocks = 0;

  void run(std::uint32_t grid, std::uint32_t block_threads, const std::function<void()>& body) {
    blocks = grid;
    threads = block_threads;
    body_ = &body;
    if (fibers_.size() < threads) fibers_.resize(threads);
    for (block = 0; block < blocks; ++block) run_block();
  }

  // Waits until every thread of the block that has not returned is here.
  void barrier() {
    const std::uint64_t mine = generation_;
    if (++arrived_ == alive_) return release();
    while (generation_ == mine) yield();
  }

 private:
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bool done = true;
  };

  void release() {
    arrived_ = 0;
    ++generation_;
  }
  void yield() { swapcontext(&fibers_[thread].context, &scheduler_); }

  void enter() {
    (*body_)();
    fibers_[thread].done = true;
    if (--alive_ > 0 && arrived_ == alive_) release();
    yield();
  }

  // Out of line: what the caller holds in registers is not at getcontext's mercy, which may return twice.
  [[gnu::noinline]] static void prepare(Fiber& fiber) {
    constexpr std::size_t stack_bytes = 64 << 10;
    if (!fiber.stack) fiber.stack = std::make_unique<char[]>(stack_bytes);
    fiber.done = false;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, &EmulatedGrid::enter_current, 0);
  }

  void run_block() {
    alive_ = threads;
    arrived_ = 0;
    for (std::uint32_t t = 0; t < threads; ++t) prepare(fibers_[t]);
    while (alive_ > 0) {
      const std::uint32_t before = alive_;
      const std::uint64_t generation = generation_;
      for (std::uint32_t i = 0; i < threads; ++i) {
        const std::uint32_t at = block % 2 ? threads - 1 - i : i;
        const std::uint32_t warps = (threads + lanes - 1) / lanes;
        thread = at % warps * lanes + at / warps;
        if (thread < threads && !fibers_[thread].done) swapcontext(&scheduler_, &fibers_[thread].context);
      }
      // Threads beyond a last warp's end keep the order above from reaching all of an uneven block in one pass.
      for (thread = 0; thread < threads; ++thread)
        if (!fibers_[thread].done) swapcontext(&scheduler_, &fibers_[thread].context);
      if (alive_ == before && generation == generation_ && alive_ > 0)
        throw std::logic_error("emulated kernel: threads wait at a barrier that others never reach");
    }
  }

  static void enter_current();

  std::vector<Fiber> fibers_;
  ucontext_t scheduler_{};
  const std::function<void()>* body_ = nullptr;
  std::uint32_t alive_ = 0, arrived_ = 0;
  std::uint64_t generation_ = 0;
};

EmulatedGrid emulated_grid;

inline void EmulatedGrid::enter_current() { emulated_grid.enter(); }

SLACKTIER_DEVICE std::uint32_t kernel_thread() { return emulated_grid.thread; }
SLACKTIER_DEVICE std::uint32_t kernel_threads() { return emulated_grid.threads; }
SLACKTIER_DEVICE std::uint32_t kernel_block() { return emulated_grid.block; }
SLACKTIER_DEVICE std::uint32_t kernel_blocks() { return emulated_grid.blocks; }
SLACKTIER_DEVICE void kernel_barrier() { emulated_grid.barrier(); }

}  // namespace
}  // namespace slacktier

#define SLACKTIER_LAUNCH(kernel, blocks, threads, native_stream, ...) \
  (static_cast<void>(native_stream), emulated_grid.run((blocks), (threads), [&] { kernel(__VA_ARGS__); }))
