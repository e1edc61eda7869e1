#include "platforms/post.hpp"

#include <cstdint>

namespace slacktier {
namespace {

// Tells the core that this is a loop that waits.
inline void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr int looks = 32;  // between two readings of the clock: a few hundred nanoseconds

}  // namespace

bool Post::poll(Nanos patience, const std::atomic<bool>& stop) const noexcept {
  const Clock& clock = monotonic_clock();
  const Nanos until = clock.now() + patience;
  for (;;) {
    for (int look = 0; look < looks; ++look) {
      if (posted()) return true;
      pause();
    }
    if (stop.load(std::memory_order_acquire) || clock.now() >= until) return posted();
  }
}

}  // namespace slacktier
