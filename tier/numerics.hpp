// Record values to BF16 and FP32, bit for bit as the model's reference does it. Host and device code.
//
// E4M3FN x 2^(scale - 127), scale 255 = NaN (OCP Microscaling Formats 1.0: E4M3, E8M0). Results that are NaN are canonical
// (0x7FC00000, 0x7FC0). FP32 subnormals are kept: scale 0 is 2^-127. FP32 -> BF16 rounds to nearest even.
#pragma once

#include <bit>
#include <cstdint>

#include "platforms/host_device.hpp"

namespace slacktier {

inline constexpr std::uint32_t fp32_nan = 0x7FC00000u;
inline constexpr std::uint16_t bf16_nan = 0x7FC0u;

// FP32 bits of one value of a block. An E4M3 number is sign, significand m (0 to 15, four bits) and power: m * 2^(e - 10 )
// with e from 1 (subnormals included); the product m * 2^(e - 10 + scale - 127) is exact in FP32 unless it overflows.
SLACKTIER_HOST_DEVICE constexpr std::uint32_t dequantise_fp32(std::uint8_t value, std::uint8_t scale) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x80u) << 24;
  const std::uint32_t exponent = (value >> 3) & 0xFu;
  const std::uint32_t mantissa = value & 7u;
  if (scale == 255 || (exponent == 15 && mantissa == 7)) return fp32_nan;
  std::uint32_t m = exponent == 0 ? mantissa : mantissa | 8u;
  if (m == 0) return sign;
  int power = static_cast<int>(exponent == 0 ? 1 : exponent) - 10 + static_cast<int>(scale) - 127;  // value = m * 2^power
  while (m < 8u) {
    m <<= 1;
    --power;
  }
  // Now 8 <= m < 16: value = (m / 8) * 2^(power + 3).
  const int biased = power + 3 + 127;
  if (biased >= 255) return sign | 0x7F800000u;
  if (biased > 0) return sign | static_cast<std::uint32_t>(biased) << 23 | (m & 7u) << 20;
  return sign | (m << 20) >> (1 - biased);  // subnormal; biased >= -9, so no bit is lost
}

// Rounds to nearest even; NaN becomes canonical.
SLACKTIER_HOST_DEVICE constexpr std::uint16_t bf16_from_fp32(std::uint32_t bits) {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return bf16_nan;
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

SLACKTIER_HOST_DEVICE constexpr std::uint16_t dequantise_bf16(std::uint8_t value, std::uint8_t scale) {
  return bf16_from_fp32(dequantise_fp32(value, scale));
}

}  // namespace slacktier
