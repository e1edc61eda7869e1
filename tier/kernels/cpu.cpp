// The tier's kernels for the cpu device.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tier/gather.hpp"
#include "tier/numerics.hpp"

namespace slacktier {
namespace {

// BF16 bits of one block of 32 under a scale for which no result is subnormal or infinite: exponent arithmetic only, no
// branch, so that the compiler turns the loop into vector code. Elsewhere the exact scalar path.
void dequantise_block(const std::uint8_t* values, std::uint8_t scale, std::uint16_t* out) {
  // |value| lies in [2^-9, 448]: 2^(scale - 127) may move it within the normal numbers of BF16.
  if (scale < 10 || scale > 245) {
    for (int i = 0; i < 32; ++i) out[i] = dequantise_bf16(values[i], scale);
    return;
  }
  const std::uint32_t shift = (static_cast<std::uint32_t>(scale) - 127u) << 7;
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t v = values[i];
    const std::uint32_t magnitude = v & 0x7Fu;
    const std::uint32_t mantissa = v & 7u;
    const std::uint32_t normal = (magnitude << 4) + (120u << 7);
    // A subnormal is mantissa * 2^-9; int to float conversion normalises it.
    const std::uint32_t subnormal =
        (std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(mantissa))) >> 16) - (9u << 7);
    const std::uint32_t finite = (magnitude < 8 ? subnormal : normal) + shift;
    const std::uint32_t signed_value = ((v & 0x80u) << 8) | (magnitude == 0 ? 0u : finite);
    out[i] = static_cast<std::uint16_t>(magnitude == 0x7Fu ? bf16_nan : signed_value);
  }
}

void dequantise_row(const std::byte* values, const std::byte* scales, const GatherArgs& args, std::uint16_t* out) {
  if (args.format == RecordFormat::bf16) {
    std::memcpy(out, values, args.row_values * sizeof(std::uint16_t));
    // NaN results are canonical in every format.
    for (std::uint32_t i = 0; i < args.row_values; ++i)
      if ((out[i] & 0x7FFFu) > 0x7F80u) out[i] = bf16_nan;
    return;
  }
  const auto* v = reinterpret_cast<const std::uint8_t*>(values);
  const auto* s = reinterpret_cast<const std::uint8_t*>(scales);
  for (std::uint32_t b = 0; b < args.row_values / 32; ++b) dequantise_block(v + 32 * b, s[b], out + 32 * b);
}

void gather(void*, const void* raw) {
  const auto& args = *static_cast<const GatherArgs*>(raw);
  const std::uint32_t values = args.cache.value_bytes;
  constexpr std::uint32_t ahead = 8;
  for (std::uint32_t i = 0; i < args.lookups; ++i) {
    if (i + ahead < args.lookups) {
      const Descriptor next = args.descriptors[i + ahead];
      if (next.kind() == LookupKind::hit) {
        const std::byte* line = args.cache.values + std::size_t{next.slot()} * values;
        for (std::uint32_t b = 0; b < values; b += 64) __builtin_prefetch(line + b);
        if (args.cache.scale_bytes)
          __builtin_prefetch(args.cache.scales + std::size_t{next.slot()} * args.cache.scale_bytes);
      } else if (next.kind() == LookupKind::resident) {
        const std::byte* line = args.host_table + std::size_t{next.row()} * args.row_bytes;
        for (std::uint32_t b = 0; b < args.row_bytes; b += 64) __builtin_prefetch(line + b);
      }
    }
    const Descriptor d = args.descriptors[i];
    std::uint16_t* out = args.out + std::size_t{i} * args.row_values;
    const std::byte* record = nullptr;
    switch (d.kind()) {
      case LookupKind::zero:
        std::memset(out, 0, args.row_values * sizeof(std::uint16_t));
        continue;
      case LookupKind::hit:
        dequantise_row(args.cache.values + std::size_t{d.slot()} * values,
                       args.cache.scales + std::size_t{d.slot()} * args.cache.scale_bytes, args, out);
        continue;
      case LookupKind::miss:
        record = args.pool + std::size_t{d.buffer()} * args.page_bytes + std::size_t{d.record()} * args.row_bytes;
        if (d.slot() != no_slot) store_record(args.cache, d.slot(), record);
        break;
      case LookupKind::resident:
        record = args.host_table + std::size_t{d.row()} * args.row_bytes;
        break;
    }
    dequantise_row(record, record + values, args, out);
  }
}

void hash(void*, const void* raw) {
  const auto& args = *static_cast<const HashArgs*>(raw);
  for (std::uint32_t l = 0; l < args.layers; ++l)
    args.hash->rows(l, args.context, args.tokens, args.rows + std::size_t{l} * args.tokens * args.rows_per_token);
}

constexpr std::array kernels{KernelEntry{"tier.hash", hash}, KernelEntry{"tier.gather", gather}};
constexpr std::array images{ModuleImage{"cpu", kernels}};

}  // namespace

std::span<const ModuleImage> tier_modules() { return images; }

CacheArrays cache_layout(const TableSpec& spec) {
  CacheArrays cache;
  const bool fp8 = spec.format == RecordFormat::fp8_e4m3_block32;
  cache.value_bytes = fp8 ? spec.row_values : spec.row_values * 2;
  cache.scale_bytes = fp8 ? spec.row_values / 32 : 0;
  return cache;
}

void store_record(const CacheArrays& cache, std::uint32_t slot, const std::byte* record) {
  std::memcpy(cache.values + std::size_t{slot} * cache.value_bytes, record, cache.value_bytes);
  if (cache.scale_bytes)
    std::memcpy(cache.scales + std::size_t{slot} * cache.scale_bytes, record + cache.value_bytes, cache.scale_bytes);
}

}  // namespace slacktier
