// numpy's default_rng(seed).integers(0, bound) for int64: what the Engram release draws its multipliers with. Own
// implementation of the published algorithms: SeedSequence (M. E. O'Neill's seed_seq_fe with numpy's constants), PCG64
// (XSL-RR 128/64), and Lemire's bounded draw with numpy's choice of word size by bound. Tests hold it against numpy's
// output.
#pragma once

#include <array>
#include <cstdint>

namespace slacktier {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);
  std::uint64_t next64();
  // Uniform in [0, bound), bound >= 1; the value that Generator.integers(0, bound, dtype=int64) draws next.
  std::uint64_t below(std::uint64_t bound);

 private:
  __extension__ using Wide = unsigned __int128;
  // Halves of one 64-bit draw, low half first; the unused half is kept for the next 32-bit draw.
  std::uint32_t next32();

  Wide state_ = 0, increment_ = 0;
  bool has_half_ = false;
  std::uint32_t half_ = 0;
};

// SeedSequence(seed).generate_state(4, uint64).
std::array<std::uint64_t, 4> numpy_seed_state(std::uint64_t seed);

}  // namespace slacktier
