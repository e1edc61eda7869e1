// The tier's kernels for the cpu device.
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tier/gather.hpp"
#include "tier/kernels/modules.hpp"
#include "tier/numerics.hpp"

namespace slacktier {
namespace {

// |value| lies in [2^-9, 448]: 2^(scale - 127) may move it within the normal numbers of BF16.
constexpr bool plain_scale(std::uint8_t scale) { return scale >= 10 && scale <= 245; }

// Sanitizers start before the resolvers of function clones can run.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__clang__)
#define SLACKTIER_VECTOR_CLONES __attribute__((target_clones("arch=skylake-avx512", "avx2", "default")))
#else
#define SLACKTIER_VECTOR_CLONES
#endif

// BF16 bits of blocks of 32 under scales for which no result is subnormal or infinite: 16-bit integer arithmetic without
// branches, which the compiler turns into vector code. `out` of other blocks is not written.
SLACKTIER_VECTOR_CLONES void dequantise_plain_blocks(const std::uint8_t* values, const std::uint8_t* scales,
                                                     std::uint32_t blocks, std::uint16_t* out) {
  for (std::uint32_t b = 0; b < blocks; ++b) {
    if (!plain_scale(scales[b])) continue;
    const auto shift = static_cast<std::uint16_t>((scales[b] - 127) * 128);
    const std::uint8_t* __restrict in = values + 32 * b;
    std::uint16_t* __restrict to = out + 32 * b;
    for (int i = 0; i < 32; ++i) {
      const auto v = static_cast<std::uint16_t>(in[i]);
      const auto magnitude = static_cast<std::uint16_t>(v & 0x7F);
      const auto normal = static_cast<std::uint16_t>((magnitude << 4) + (120 << 7));
      // A subnormal is m * 2^-9 with m from 1 to 7: its leading bit gives the exponent, the bits behind it the mantissa.
      const auto high = static_cast<std::uint16_t>((120 << 7) + ((magnitude - 4) << 5));
      const auto middle = static_cast<std::uint16_t>((119 << 7) + ((magnitude - 2) << 6));
      const auto subnormal = magnitude >= 4 ? high : magnitude >= 2 ? middle : static_cast<std::uint16_t>(118 << 7);
      const auto finite = static_cast<std::uint16_t>((magnitude >= 8 ? normal : subnormal) + shift);
      const auto kept = magnitude == 0 ? std::uint16_t{0} : finite;
      const auto with_sign = static_cast<std::uint16_t>(kept | ((v & 0x80) << 8));
      to[i] = magnitude == 0x7F ? bf16_nan : with_sign;
    }
  }
}

// The same in FP32, under any scale: E4M3 bits at the top of an FP32 number are the value times 2^-120, and the products are
// exact unless they overflow.
SLACKTIER_VECTOR_CLONES void dequantise_blocks_fp32(const std::uint8_t* values, const std::uint8_t* scales,
                                                    std::uint32_t blocks, std::uint32_t* out) {
  for (std::uint32_t b = 0; b < blocks; ++b) {
    const std::uint32_t scale = scales[b];
    const auto factor = std::bit_cast<float>(scale == 255 ? fp32_nan : scale == 0 ? 0x00400000u : scale << 23);
    const std::uint8_t* __restrict in = values + 32 * b;
    std::uint32_t* __restrict to = out + 32 * b;
    for (int i = 0; i < 32; ++i) {
      const std::uint32_t v = in[i];
      const std::uint32_t magnitude = v & 0x7Fu;
      const auto product = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 20) * 0x1p120f * factor);
      const bool nan = magnitude == 0x7Fu || (product & 0x7FFFFFFFu) > 0x7F800000u;
      to[i] = nan ? fp32_nan : product | (v & 0x80u) << 24;
    }
  }
}

void dequantise_row(const std::byte* values, const std::byte* scales, const GatherArgs& args, std::uint32_t* out) {
  if (args.format == RecordFormat::fp8_e4m3_block32)
    return dequantise_blocks_fp32(reinterpret_cast<const std::uint8_t*>(values),
                                  reinterpret_cast<const std::uint8_t*>(scales), args.row_values / 32, out);
  for (std::uint32_t i = 0; i < args.row_values; ++i) {
    std::uint16_t value;
    std::memcpy(&value, values + 2 * i, sizeof value);
    out[i] = (value & 0x7FFFu) > 0x7F80u ? fp32_nan : std::uint32_t{value} << 16;
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
  const std::uint32_t blocks = args.row_values / 32;
  dequantise_plain_blocks(v, s, blocks, out);
  for (std::uint32_t b = 0; b < blocks; ++b)
    if (!plain_scale(s[b]))
      for (std::uint32_t i = 32 * b; i < 32 * (b + 1); ++i) out[i] = dequantise_bf16(v[i], s[b]);
}

void store_record(const CacheArrays& cache, std::uint32_t slot, const std::byte* record) {
  std::memcpy(cache.values + std::size_t{slot} * cache.value_bytes, record, cache.value_bytes);
  if (cache.scale_bytes)
    std::memcpy(cache.scales + std::size_t{slot} * cache.scale_bytes, record + cache.value_bytes, cache.scale_bytes);
}

template <class Out>
void gather_to(const GatherArgs& args) {
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
        const std::byte* line = args.table + std::size_t{next.row()} * args.row_bytes;
        for (std::uint32_t b = 0; b < args.row_bytes; b += 64) __builtin_prefetch(line + b);
      }
    }
    const Descriptor d = args.descriptors[i];
    Out* out = static_cast<Out*>(args.out) + std::size_t{args.at ? args.at[i] : i} * args.row_values;
    const std::byte* record = nullptr;
    switch (d.kind()) {
      case LookupKind::zero:
        std::memset(out, 0, args.row_values * sizeof(Out));
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
        record = args.table + std::size_t{d.row()} * args.row_bytes;
        break;
    }
    dequantise_row(record, record + values, args, out);
  }
}

void gather(void*, const void* raw) {
  const auto& args = *static_cast<const GatherArgs*>(raw);
  args.output == OutputFormat::fp32 ? gather_to<std::uint32_t>(args) : gather_to<std::uint16_t>(args);
}

void hash(void*, const void* raw) {
  const auto& args = *static_cast<const HashArgs*>(raw);
  for (std::uint32_t l = 0; l < args.layers; ++l)
    args.hash->rows(l, args.context, args.tokens, args.rows + std::size_t{l} * args.tokens * args.rows_per_token);
}

void store(void*, const void* raw) {
  const auto& args = *static_cast<const StoreArgs*>(raw);
  for (std::uint32_t i = 0; i < args.count; ++i)
    store_record(args.cache, args.slots[i], args.records + std::size_t{i} * args.row_bytes);
}

constexpr std::array kernels{KernelEntry{"tier.hash", hash}, KernelEntry{"tier.gather", gather},
                             KernelEntry{"tier.store", store}};

}  // namespace

std::span<const KernelEntry> cpu_kernels() { return kernels; }

}  // namespace slacktier
