// The 64-bit finaliser of splitmix64 (Steele, Lea and Flood, 2014; constants by D. Stafford): a bijection whose output bits
// all depend on all input bits. Generated rows, page stamps and PLE's multipliers are made of it.
#pragma once

#include <cstdint>

namespace slacktier {

constexpr std::uint64_t golden_gamma = 0x9E3779B97F4A7C15ULL;

constexpr std::uint64_t finalize64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t splitmix64(std::uint64_t x) { return finalize64(x + golden_gamma); }

}  // namespace slacktier
