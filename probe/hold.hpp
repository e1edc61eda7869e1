// Waiting as an injected delay does.
#pragma once

#include "platforms/clock.hpp"

namespace slacktier {

// Returns at `until` of monotonic_clock(), to a microsecond: sleeps first and spins the end, which sleeping threads wake
// late from.
inline void hold_until(Nanos until) noexcept {
  constexpr Nanos spin_last = 150'000;
  const Clock& clock = monotonic_clock();
  if (until - clock.now() > spin_last) clock.sleep_until(until - spin_last);
  while (clock.now() < until) {
  }
}

}  // namespace slacktier
