#include "tier/primes.hpp"

#include <array>
#include <cstdint>

namespace slacktier {

namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b, std::uint64_t n) {
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % n);
}

std::uint64_t power_mod(std::uint64_t base, std::uint64_t exponent, std::uint64_t n) {
  std::uint64_t result = 1;
  for (base %= n; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = multiply_mod(result, base, n);
    base = multiply_mod(base, base, n);
  }
  return result;
}

constexpr std::array<std::uint64_t, 12> bases{2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};

}  // namespace

bool is_prime(std::uint64_t n) {
  if (n < 2) return false;
  for (const std::uint64_t p : bases) {
    if (n % p == 0) return n == p;
  }
  std::uint64_t odd = n - 1;
  int twos = 0;
  for (; (odd & 1) == 0; odd >>= 1) ++twos;
  for (const std::uint64_t base : bases) {
    std::uint64_t x = power_mod(base, odd, n);
    if (x == 1 || x == n - 1) continue;
    bool composite = true;
    for (int i = 1; i < twos && composite; ++i) {
      x = multiply_mod(x, x, n);
      composite = x != n - 1;
    }
    if (composite) return false;
  }
  return true;
}

std::uint64_t next_prime(std::uint64_t n) {
  if (n < 2) return 2;
  std::uint64_t candidate = (n + 1) | 1;
  while (!is_prime(candidate)) candidate += 2;
  return candidate;
}

}  // namespace slacktier
