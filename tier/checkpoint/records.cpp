#include "tier/checkpoint/records.hpp"

#include <bit>
#include <cstring>

#include "tier/numerics.hpp"

namespace slacktier {

namespace {

std::uint32_t load16(const std::byte* at) {
  return std::to_integer<std::uint32_t>(at[0]) | std::to_integer<std::uint32_t>(at[1]) << 8;
}
std::uint32_t load32(const std::byte* at) { return load16(at) | load16(at + 2) << 16; }

// FP32 bits of scale `i`.
std::uint32_t scale_bits(ScaleType type, const std::byte* scales, std::uint32_t i) {
  switch (type) {
    case ScaleType::fp32:
      return load32(scales + std::size_t{i} * 4);
    case ScaleType::bf16:
      return load16(scales + std::size_t{i} * 2) << 16;
    default:
      return dequantise_fp32(0x38, std::to_integer<std::uint8_t>(scales[i]));  // 0x38 is one
  }
}

// The E8M0 number that equals an FP32 one, or -1: powers of two from 2^-127 to 2^127, and NaN.
int e8m0_of(std::uint32_t bits) {
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 255;
  if (bits == 0x00400000u) return 0;  // 2^-127, a subnormal
  const std::uint32_t exponent = bits >> 23;
  return (bits & 0x007FFFFFu) == 0 && exponent >= 1 && exponent <= 254 ? static_cast<int>(exponent) : -1;
}

}  // namespace

std::uint32_t RecordMaker::scale_bytes() const {
  return scale_count * (scale == ScaleType::fp32 ? 4 : scale == ScaleType::bf16 ? 2 : scale == ScaleType::e8m0 ? 1 : 0);
}

int RecordMaker::make(const std::byte* weight, const std::byte* scales, std::byte* out) const {
  if (format == RecordFormat::fp8_e4m3_block32) {
    std::memcpy(out, weight, values);
    const std::uint32_t blocks = values / 32, blocks_per_scale = blocks / scale_count;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      const std::uint32_t i = b / blocks_per_scale;
      const int stored = scale == ScaleType::e8m0 ? std::to_integer<int>(scales[i]) : e8m0_of(scale_bits(scale, scales, i));
      if (stored < 0) return static_cast<int>(i);
      out[values + b] = static_cast<std::byte>(stored);
    }
    return -1;
  }
  if (!fp8_weight) {
    std::memcpy(out, weight, std::size_t{values} * 2);
    return -1;
  }
  const std::uint32_t per_scale = values / scale_count;
  for (std::uint32_t v = 0; v < values; ++v) {
    // In FP32, as models do it: value and scale are exact in FP32, the product is rounded once there and once to BF16.
    const auto value = std::bit_cast<float>(dequantise_fp32(std::to_integer<std::uint8_t>(weight[v]), 127));
    const auto factor = std::bit_cast<float>(scale_bits(scale, scales, v / per_scale));
    const std::uint16_t rounded = bf16_from_fp32(std::bit_cast<std::uint32_t>(value * factor));
    out[2 * v] = static_cast<std::byte>(rounded & 0xFF);
    out[2 * v + 1] = static_cast<std::byte>(rounded >> 8);
  }
  return -1;
}

}  // namespace slacktier
