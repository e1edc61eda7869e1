// Primes as the models' configurations choose their heads' table sizes.
#pragma once

#include <cstdint>

namespace slacktier {

// Deterministic Miller-Rabin for every 64-bit number (bases: the first twelve primes; Sorenson and Webster, 2015).
bool is_prime(std::uint64_t n);

// The smallest prime above n. n must be below 2^63.
std::uint64_t next_prime(std::uint64_t n);

}  // namespace slacktier
