#include "tier/numpy_random.hpp"

#include <cstddef>
#include <cstdint>

namespace slacktier {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr Wide pcg_multiplier = (static_cast<Wide>(2549297995355413924ULL) << 64) | 4865540595714422341ULL;

// The running constant of SeedSequence's hash: xor, advance, multiply, fold.
struct SeedHash {
  std::uint32_t constant, factor;
  std::uint32_t operator()(std::uint32_t value) {
    value ^= constant;
    constant *= factor;
    value *= constant;
    return value ^ (value >> 16);
  }
};

std::uint32_t seed_mix(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t result = 0xca01f9ddU * x - 0x4973f715U * y;
  return result ^ (result >> 16);
}

}  // namespace

std::array<std::uint64_t, 4> numpy_seed_state(std::uint64_t seed) {
  // A 64-bit seed is at most two words of entropy, so all of it fits the pool of four; missing words are zero.
  SeedHash absorb{0x43b0d7e5U, 0x931e8875U};
  std::array<std::uint32_t, 4> pool{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  for (std::uint32_t& word : pool) word = absorb(word);
  for (std::size_t from = 0; from < pool.size(); ++from) {
    for (std::size_t to = 0; to < pool.size(); ++to) {
      if (from != to) pool[to] = seed_mix(pool[to], absorb(pool[from]));
    }
  }
  SeedHash expand{0x8b51f9ddU, 0x58f38dedU};
  std::array<std::uint64_t, 4> state{};
  for (std::size_t i = 0; i < 8; ++i) {
    state[i / 2] |= static_cast<std::uint64_t>(expand(pool[i % pool.size()])) << (32 * (i % 2));
  }
  return state;
}

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const auto words = numpy_seed_state(seed);
  const Wide start = (static_cast<Wide>(words[0]) << 64) | words[1];
  increment_ = (((static_cast<Wide>(words[2]) << 64) | words[3]) << 1) | 1;
  state_ = increment_ + start;  // one step from zero gives the increment
  state_ = state_ * pcg_multiplier + increment_;
}

std::uint64_t NumpyRandom::next64() {
  state_ = state_ * pcg_multiplier + increment_;
  const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
  const auto turn = static_cast<unsigned>(state_ >> 122);
  return (folded >> turn) | (folded << ((64 - turn) & 63));
}

std::uint32_t NumpyRandom::next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const std::uint64_t word = next64();
  has_half_ = true;
  half_ = static_cast<std::uint32_t>(word >> 32);
  return static_cast<std::uint32_t>(word);
}

std::uint64_t NumpyRandom::below(std::uint64_t bound) {
  if (bound <= 1) return 0;  // draws nothing
  constexpr std::uint64_t word32 = std::uint64_t{1} << 32;
  if (bound == word32) return next32();
  if (bound < word32) {
    // Lemire's rejection in 32-bit words.
    const auto small = static_cast<std::uint32_t>(bound);
    std::uint64_t product = static_cast<std::uint64_t>(next32()) * small;
    if (static_cast<std::uint32_t>(product) < small) {
      const std::uint32_t threshold = (0U - small) % small;
      while (static_cast<std::uint32_t>(product) < threshold) product = static_cast<std::uint64_t>(next32()) * small;
    }
    return product >> 32;
  }
  Wide product = static_cast<Wide>(next64()) * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = static_cast<Wide>(next64()) * bound;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace slacktier
