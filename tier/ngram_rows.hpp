// The hashes' arithmetic and their parameters as one block of bytes, for the host and for kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "platforms/host_device.hpp"

namespace slacktier {

__extension__ using Wide = unsigned __int128;

// One head. The quotient mix / prime is the high word of mix * inverse, or one less: with inverse = floor(2^64 / prime) and
// mix < 2^63 the product falls short of mix / prime by less than mix / 2^64 < 1/2 (Barrett, 1986). So the remainder is below
// 2 * prime and one conditional subtraction makes it exact.
struct NgramHead {
  std::uint64_t inverse;
  std::uint64_t prime;
  std::uint64_t offset;
};

SLACKTIER_HOST_DEVICE inline std::uint32_t ngram_row(std::uint64_t mix, const NgramHead& head) {
  const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(mix) * head.inverse) >> 64);
  const std::uint64_t rest = mix - quotient * head.prime;
  const std::uint64_t less = rest - head.prime;
  return static_cast<std::uint32_t>((rest < head.prime ? rest : less) + head.offset);
}

// The block begins with this; multipliers [layers][max_ngram], heads [layers][columns] and the columns' orders follow.
struct NgramBlock {
  std::uint32_t max_ngram, columns, layers, padding;

  SLACKTIER_HOST_DEVICE const std::uint64_t* multipliers() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
  SLACKTIER_HOST_DEVICE const NgramHead* heads() const {
    return reinterpret_cast<const NgramHead*>(multipliers() + std::size_t{layers} * max_ngram);
  }
  SLACKTIER_HOST_DEVICE const std::uint32_t* orders() const {
    return reinterpret_cast<const std::uint32_t*>(heads() + std::size_t{layers} * columns);
  }
  std::size_t bytes() const {
    return sizeof(NgramBlock) + std::size_t{layers} * (max_ngram * sizeof(std::uint64_t) + columns * sizeof(NgramHead)) +
           columns * sizeof(std::uint32_t);
  }
};
static_assert(sizeof(NgramBlock) % alignof(NgramHead) == 0);

// Of the polynomial hash: heads [layers][columns], each head's powers of the vocabulary [layers][columns][depth] and the
// columns' orders follow.
struct PolynomialBlock {
  std::uint32_t depth, columns, layers, padding;

  SLACKTIER_HOST_DEVICE const NgramHead* heads() const { return reinterpret_cast<const NgramHead*>(this + 1); }
  SLACKTIER_HOST_DEVICE const std::uint64_t* powers() const {
    return reinterpret_cast<const std::uint64_t*>(heads() + std::size_t{layers} * columns);
  }
  SLACKTIER_HOST_DEVICE const std::uint32_t* orders() const {
    return reinterpret_cast<const std::uint32_t*>(powers() + std::size_t{layers} * columns * depth);
  }
  std::size_t bytes() const {
    return sizeof(PolynomialBlock) + std::size_t{layers} * columns * (sizeof(NgramHead) + depth * sizeof(std::uint64_t)) +
           columns * sizeof(std::uint32_t);
  }
};
static_assert(sizeof(PolynomialBlock) % alignof(NgramHead) == 0);

// Of the token id: ids from `rows` on read row 0.
struct TokenIdBlock {
  std::uint32_t rows, padding;
};

}  // namespace slacktier
