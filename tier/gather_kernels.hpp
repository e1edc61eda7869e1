// The tier's kernels for GPUs: hashes, gather and store. Device code, included by .cu files and by tests that emulate
// it.
//
// The gather is bound by latency and bytes, so it is shaped by its loads: a block takes a few lookups, reads their
// descriptors at once (they lie in host memory), and then every thread moves eight values of a row at a time, all its loads
// before the first store. Eight FP8 values are one 8-byte load (records of 264 bytes have no better alignment) and, as BF16,
// one 16-byte store: neighbouring threads read and write neighbouring bytes, at any lane width.
#pragma once

#include "platforms/kernel.hpp"
#include "tier/gather.hpp"
#include "tier/ngram_rows.hpp"
#include "tier/numerics.hpp"

namespace slacktier {

constexpr std::uint32_t kernel_block_threads = 256;

// How a gather is laid out: lookups and threads of a block, values of a row (0: any number, from the arguments).
template <std::uint32_t lookups, std::uint32_t block_threads, std::uint32_t row_values>
struct GatherShape {
  static constexpr std::uint32_t rows = lookups, threads = block_threads, values = row_values;
};

// One thread a row index.
SLACKTIER_KERNEL hash_ngram(HashArgs args) {
  const auto& block = *reinterpret_cast<const NgramBlock*>(args.parameters);
  const std::uint64_t total = std::uint64_t{args.layers} * args.tokens * args.rows_per_token;
  const std::uint64_t at = std::uint64_t{kernel_block()} * kernel_threads() + kernel_thread();
  if (at >= total) return;
  const auto column = static_cast<std::uint32_t>(at % args.rows_per_token);
  const auto token = static_cast<std::uint32_t>(at / args.rows_per_token % args.tokens);
  const auto layer = static_cast<std::uint32_t>(at / args.rows_per_token / args.tokens);
  const std::uint64_t* multiplier = block.multipliers() + std::size_t{layer} * block.max_ngram;
  const std::uint32_t* context = args.context + std::size_t{token} * block.max_ngram;
  std::uint64_t mix = context[0] * multiplier[0];
  const std::uint32_t order = block.orders()[column];
  for (std::uint32_t n = 1; n < order; ++n) mix ^= context[n] * multiplier[n];
  args.rows[at] = ngram_row(mix, block.heads()[std::size_t{layer} * block.columns + column]);
}

// One thread a row index.
SLACKTIER_KERNEL hash_polynomial(HashArgs args) {
  const auto& block = *reinterpret_cast<const PolynomialBlock*>(args.parameters);
  const std::uint64_t total = std::uint64_t{args.layers} * args.tokens * args.rows_per_token;
  const std::uint64_t at = std::uint64_t{kernel_block()} * kernel_threads() + kernel_thread();
  if (at >= total) return;
  const auto column = static_cast<std::uint32_t>(at % args.rows_per_token);
  const auto token = static_cast<std::uint32_t>(at / args.rows_per_token % args.tokens);
  const auto layer = static_cast<std::uint32_t>(at / args.rows_per_token / args.tokens);
  const std::size_t head = std::size_t{layer} * block.columns + column;
  const std::uint64_t* power = block.powers() + head * block.depth;
  const std::uint32_t* context = args.context + std::size_t{token} * block.depth;
  std::uint64_t mix = context[0];
  const std::uint32_t order = block.orders()[column];
  for (std::uint32_t n = 1; n < order; ++n) mix += context[n] * power[n];
  args.rows[at] = ngram_row(mix, block.heads()[head]);
}

// One thread a token and layer.
SLACKTIER_KERNEL hash_token_id(HashArgs args) {
  const auto& block = *reinterpret_cast<const TokenIdBlock*>(args.parameters);
  const std::uint64_t at = std::uint64_t{kernel_block()} * kernel_threads() + kernel_thread();
  if (at >= std::uint64_t{args.layers} * args.tokens) return;
  const std::uint32_t id = args.context[at % args.tokens];
  args.rows[at] = id < block.rows ? id : 0;
}

// The multiplication of numerics.hpp in floating point, exact in FP32 but for overflow: the E4M3 bits as the top of an FP32
// number are the value times 2^-120, subnormals included; nothing here may flush subnormals to zero.
SLACKTIER_DEVICE float scale_factor(std::uint32_t scale) {
  return float_of_bits(scale == 255 ? fp32_nan : scale == 0 ? 0x00400000u : scale << 23);
}
SLACKTIER_DEVICE std::uint32_t dequantised_fp32(std::uint32_t value, float factor) {
  const std::uint32_t magnitude = value & 0x7Fu;
  const float exact = float_of_bits(magnitude << 20) * float_of_bits((120u + 127u) << 23);
  const std::uint32_t product = bits_of_float(exact * factor);
  const bool nan = magnitude == 0x7Fu || (product & 0x7FFFFFFFu) > 0x7F800000u;
  return nan ? fp32_nan : product | (value & 0x80u) << 24;
}
SLACKTIER_DEVICE std::uint32_t dequantised_bf16(std::uint32_t value, float factor) {
  return bf16_from_fp32(dequantised_fp32(value, factor));
}

// The bits of one E4M3 number at the top of a word: its value times 2^-120 as an FP32 number, sign included.
SLACKTIER_DEVICE float small_float(std::uint32_t top) {
  return float_of_bits(static_cast<std::uint32_t>(static_cast<std::int32_t>(top) >> 4) & 0x87F00000u);
}
// Two FP32 numbers that are BF16 numbers already.
SLACKTIER_DEVICE std::uint32_t packed_bf16(float low, float high) {
  return bits_of_float(low) >> 16 | (bits_of_float(high) & 0xFFFF0000u);
}

// Four values of a block. Scales from 10 to 254 leave no result subnormal or NaN, so an E4M3 number's four significant bits
// fit into BF16 and nothing is to be rounded; NaN values are put right afterwards, where there are any.
SLACKTIER_DEVICE void dequantise_four(std::uint32_t four, std::uint32_t scale, std::uint32_t* out) {
  if (scale - 10u > 244u) {
    const float factor = scale_factor(scale);
    out[0] = dequantised_bf16(four & 0xFFu, factor) | dequantised_bf16(four >> 8 & 0xFFu, factor) << 16;
    out[1] = dequantised_bf16(four >> 16 & 0xFFu, factor) | dequantised_bf16(four >> 24, factor) << 16;
    return;
  }
  const float unit = float_of_bits((120u + 127u) << 23), factor = float_of_bits(scale << 23);
  out[0] = packed_bf16(small_float(four << 24) * unit * factor, small_float(four << 16) * unit * factor);
  out[1] = packed_bf16(small_float(four << 8) * unit * factor, small_float(four) * unit * factor);
  // The top bit of each byte whose lower bits are all set.
  const std::uint32_t nan = ((four & 0x7F7F7F7Fu) + 0x01010101u) & 0x80808080u;
  if (nan == 0) return;
  const std::uint32_t low = ((nan >> 7 & 1u) | (nan & 0x8000u) << 1) * 0xFFFFu;
  const std::uint32_t high = ((nan >> 23 & 1u) | (nan >> 15 & 0x10000u)) * 0xFFFFu;
  out[0] = (out[0] & ~low) | (0x7FC07FC0u & low);
  out[1] = (out[1] & ~high) | (0x7FC07FC0u & high);
}
static_assert(bf16_nan == 0x7FC0u);

// Eight values of a block.
SLACKTIER_DEVICE void dequantise_eight(const Bytes8& bytes, std::uint32_t scale, std::uint32_t* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  // Two at a time: E4M3 bits in the upper part of a BF16 number are the value times 2^-120, subnormals included. Two exact
  // multiplications, by 2^100 and by 2^(scale - 107), bring it to its place, for scales from 10 to 234.
  if (scale - 10u <= 224u) {
    const std::uint32_t factor = (scale + 20u) << 7, factors = factor | factor << 16;
    const auto times = [](std::uint32_t pair, std::uint32_t by) {
      std::uint32_t product;  // minus zero is added: it changes no sign
      asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(product) : "r"(pair), "r"(by), "r"(0x80008000u));
      return product;
    };
    const auto pair = [&](std::uint32_t tops, std::uint32_t nan) {
      const std::uint32_t small = (tops & 0x80008000u) | (tops >> 4 & 0x07F007F0u);
      return (times(times(small, 0x71807180u), factors) & ~nan) | (0x7FC07FC0u & nan);
    };
    for (int w = 0; w < 2; ++w) {
      const std::uint32_t four = bytes.word[w];
      // The top bit of each NaN byte, which the permutation below spreads over all bits of its half.
      const std::uint32_t nan = ((four & 0x7F7F7F7Fu) + 0x01010101u) & 0x80808080u;
      std::uint32_t low, high, low_nan, high_nan;
      asm("prmt.b32 %0, %1, 0, 0x1404;" : "=r"(low) : "r"(four));
      asm("prmt.b32 %0, %1, 0, 0x3424;" : "=r"(high) : "r"(four));
      asm("prmt.b32 %0, %1, 0, 0x9988;" : "=r"(low_nan) : "r"(nan));
      asm("prmt.b32 %0, %1, 0, 0xBBAA;" : "=r"(high_nan) : "r"(nan));
      out[2 * w] = pair(low, low_nan);
      out[2 * w + 1] = pair(high, high_nan);
    }
    return;
  }
#endif
  for (int w = 0; w < 2; ++w) dequantise_four(bytes.word[w], scale, out + 2 * w);
}

SLACKTIER_DEVICE std::uint32_t canonical_bf16(std::uint32_t value) {
  return (value & 0x7FFFu) > 0x7F80u ? std::uint32_t{bf16_nan} : value;
}
static_assert(fp32_nan == std::uint32_t{bf16_nan} << 16);

// Eight bytes or sixteen from any address: whole where it is aligned.
SLACKTIER_DEVICE Bytes8 load8(const std::byte* from) {
  if (multiple_of(from, 8)) return *reinterpret_cast<const Bytes8*>(from);
  Bytes8 bytes;
  memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
SLACKTIER_DEVICE Bytes16 load16(const std::byte* from) {
  if (multiple_of(from, 16)) return *reinterpret_cast<const Bytes16*>(from);
  Bytes16 bytes;
  memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

// Where a lookup's record is, as values and scales; null: a row of zeros.
struct RecordAt {
  const std::byte* values;
  const std::byte* scales;
  std::uint32_t fill;  // slot to be filled, or no_slot
};

SLACKTIER_DEVICE RecordAt record_at(const GatherArgs& args, Descriptor d) {
  const std::byte* record = nullptr;
  std::uint32_t fill = no_slot;
  switch (d.kind()) {
    case LookupKind::zero:
      return {nullptr, nullptr, no_slot};
    case LookupKind::hit:
      return {args.cache.values + std::size_t{d.slot()} * args.cache.value_bytes,
              args.cache.scales + std::size_t{d.slot()} * args.cache.scale_bytes, no_slot};
    case LookupKind::miss:
      record = args.pool + std::size_t{d.buffer()} * args.page_bytes + std::size_t{d.record()} * args.row_bytes;
      fill = d.slot();
      break;
    case LookupKind::resident:
      record = args.table + std::size_t{d.row()} * args.row_bytes;
      break;
  }
  return {record, record + args.cache.value_bytes, fill};
}

// Eight FP8 values of a row.
struct Fp8Part {
  static constexpr std::uint32_t values = 8;
  Bytes8 bytes;
  std::uint32_t scale;

  SLACKTIER_DEVICE Fp8Part load(const RecordAt& record, std::uint32_t part) {
    return {load8(record.values + 8 * part), static_cast<std::uint32_t>(record.scales[part / 4])};
  }
  SLACKTIER_DEVICE void fill(const Fp8Part& self, const CacheArrays& cache, std::uint32_t slot, std::uint32_t part) {
    *reinterpret_cast<Bytes8*>(cache.values + std::size_t{slot} * cache.value_bytes + 8 * part) = self.bytes;
    if (part % 4 == 0) cache.scales[std::size_t{slot} * cache.scale_bytes + part / 4] = static_cast<std::byte>(self.scale);
  }
  SLACKTIER_DEVICE void deliver(const Fp8Part& self, std::uint16_t* out) {
    Bytes16 result;
    dequantise_eight(self.bytes, self.scale, result.word);
    *reinterpret_cast<Bytes16*>(out) = result;
  }
  SLACKTIER_DEVICE void deliver(const Fp8Part& self, std::uint32_t* out) {
    const float factor = scale_factor(self.scale);
    for (int w = 0; w < 2; ++w) {
      Bytes16 result;
      for (int b = 0; b < 4; ++b) result.word[b] = dequantised_fp32(self.bytes.word[w] >> (8 * b) & 0xFFu, factor);
      *reinterpret_cast<Bytes16*>(out + 4 * w) = result;
    }
  }
};

// The same of records that begin at multiples of eight.
struct AlignedFp8Part : Fp8Part {
  SLACKTIER_DEVICE AlignedFp8Part load(const RecordAt& record, std::uint32_t part) {
    return {
        {*reinterpret_cast<const Bytes8*>(record.values + 8 * part), static_cast<std::uint32_t>(record.scales[part / 4])}};
  }
};

// Eight BF16 values of a row.
struct Bf16Part {
  static constexpr std::uint32_t values = 8;
  Bytes16 bytes;

  SLACKTIER_DEVICE Bf16Part load(const RecordAt& record, std::uint32_t part) { return {load16(record.values + 16 * part)}; }
  SLACKTIER_DEVICE void fill(const Bf16Part& self, const CacheArrays& cache, std::uint32_t slot, std::uint32_t part) {
    *reinterpret_cast<Bytes16*>(cache.values + std::size_t{slot} * cache.value_bytes + 16 * part) = self.bytes;
  }
  SLACKTIER_DEVICE void deliver(const Bf16Part& self, std::uint16_t* out) {
    Bytes16 result;
    for (int w = 0; w < 4; ++w)
      result.word[w] = canonical_bf16(self.bytes.word[w] & 0xFFFFu) | canonical_bf16(self.bytes.word[w] >> 16) << 16;
    *reinterpret_cast<Bytes16*>(out) = result;
  }
  SLACKTIER_DEVICE void deliver(const Bf16Part& self, std::uint32_t* out) {
    for (int half = 0; half < 2; ++half) {
      Bytes16 result;
      for (int v = 0; v < 4; ++v)
        result.word[v] = canonical_bf16(self.bytes.word[2 * half + v / 2] >> (v % 2 * 16) & 0xFFFFu) << 16;
      *reinterpret_cast<Bytes16*>(out + 4 * half) = result;
    }
  }
};

// One BF16 value, for rows whose length is no multiple of eight.
struct Bf16Single {
  static constexpr std::uint32_t values = 1;
  std::uint16_t value;

  SLACKTIER_DEVICE Bf16Single load(const RecordAt& record, std::uint32_t part) {
    std::uint16_t value;
    memcpy(&value, record.values + 2 * part, sizeof value);
    return {value};
  }
  SLACKTIER_DEVICE void fill(const Bf16Single& self, const CacheArrays& cache, std::uint32_t slot, std::uint32_t part) {
    memcpy(cache.values + std::size_t{slot} * cache.value_bytes + 2 * part, &self.value, sizeof self.value);
  }
  SLACKTIER_DEVICE void deliver(const Bf16Single& self, std::uint16_t* out) {
    *out = static_cast<std::uint16_t>(canonical_bf16(self.value));
  }
  SLACKTIER_DEVICE void deliver(const Bf16Single& self, std::uint32_t* out) { *out = canonical_bf16(self.value) << 16; }
};

// `count` numbers of a row that is delivered as zeros: one, or whole vectors.
template <std::uint32_t count, class Out>
SLACKTIER_DEVICE void deliver_zeros(Out* out) {
  if constexpr (count == 1) {
    *out = 0;
  } else {
    static_assert(count * sizeof(Out) % sizeof(Bytes16) == 0);
    for (std::uint32_t v = 0; v < count; v += sizeof(Bytes16) / sizeof(Out))
      *reinterpret_cast<Bytes16*>(out + v) = Bytes16{};
  }
}

// Out: std::uint16_t for BF16, std::uint32_t for FP32.
template <class Part, class Shape, class Out>
SLACKTIER_KERNEL gather_parts(GatherArgs args) {
  constexpr std::uint32_t in_flight =
      Shape::values == 0 ? 2 : (Shape::rows * (Shape::values / Part::values) + Shape::threads - 1) / Shape::threads;
  SLACKTIER_SHARED std::uint64_t descriptors[Shape::rows];
  SLACKTIER_SHARED std::uint32_t out_rows[Shape::rows];
  const std::uint32_t first = kernel_block() * Shape::rows;
  const std::uint32_t rows = args.lookups - first < Shape::rows ? args.lookups - first : Shape::rows;
  if (kernel_thread() < rows) {
    const std::uint32_t lookup = first + kernel_thread();
    descriptors[kernel_thread()] = load_from_host(&args.descriptors[lookup].bits);
    out_rows[kernel_thread()] = args.at ? load_from_host(args.at + lookup) : lookup;
  }
  kernel_barrier();
  const std::uint32_t parts = (Shape::values == 0 ? args.row_values : Shape::values) / Part::values;
  const std::uint32_t total = rows * parts;
  for (std::uint32_t base = kernel_thread(); base < total; base += in_flight * kernel_threads()) {
    Part loaded[in_flight] = {};
    RecordAt record[in_flight];
    for (std::uint32_t u = 0; u < in_flight; ++u) {
      const std::uint32_t item = base + u * kernel_threads();
      record[u] =
          item < total ? record_at(args, Descriptor{descriptors[item / parts]}) : RecordAt{nullptr, nullptr, no_slot};
      if (record[u].values) loaded[u] = Part::load(record[u], item % parts);
    }
    for (std::uint32_t u = 0; u < in_flight; ++u) {
      const std::uint32_t item = base + u * kernel_threads();
      if (item >= total) break;
      const std::uint32_t part = item % parts;
      Out* out =
          static_cast<Out*>(args.out) + std::size_t{out_rows[item / parts]} * (parts * Part::values) + part * Part::values;
      if (!record[u].values) {
        deliver_zeros<Part::values>(out);
        continue;
      }
      Part::deliver(loaded[u], out);
      if (record[u].fill != no_slot) Part::fill(loaded[u], args.cache, record[u].fill, part);
    }
  }
}

// One thread a byte.
SLACKTIER_KERNEL store_bytes(StoreArgs args) {
  const std::uint64_t total = std::uint64_t{args.count} * args.row_bytes;
  const std::uint64_t step = std::uint64_t{kernel_blocks()} * kernel_threads();
  for (std::uint64_t at = std::uint64_t{kernel_block()} * kernel_threads() + kernel_thread(); at < total; at += step) {
    const std::size_t slot = args.slots[at / args.row_bytes];
    const auto byte = static_cast<std::uint32_t>(at % args.row_bytes);
    if (byte < args.cache.value_bytes)
      args.cache.values[slot * args.cache.value_bytes + byte] = args.records[at];
    else if (byte - args.cache.value_bytes < args.cache.scale_bytes)
      args.cache.scales[slot * args.cache.scale_bytes + (byte - args.cache.value_bytes)] = args.records[at];
  }
}

// How they are launched; `native_stream` is the backend's.
[[maybe_unused]] static std::uint32_t blocks_of(std::uint64_t items, std::uint32_t per_block) {
  return static_cast<std::uint32_t>((items + per_block - 1) / per_block);
}

[[maybe_unused]] static void launch_hash_ngram(void* native_stream, const void* raw) {
  const HashArgs args = *static_cast<const HashArgs*>(raw);
  const std::uint64_t total = std::uint64_t{args.layers} * args.tokens * args.rows_per_token;
  if (total == 0) return;
  SLACKTIER_LAUNCH(hash_ngram, blocks_of(total, kernel_block_threads), kernel_block_threads, native_stream, args);
}

[[maybe_unused]] static void launch_hash_polynomial(void* native_stream, const void* raw) {
  const HashArgs args = *static_cast<const HashArgs*>(raw);
  const std::uint64_t total = std::uint64_t{args.layers} * args.tokens * args.rows_per_token;
  if (total == 0) return;
  SLACKTIER_LAUNCH(hash_polynomial, blocks_of(total, kernel_block_threads), kernel_block_threads, native_stream, args);
}

[[maybe_unused]] static void launch_hash_token_id(void* native_stream, const void* raw) {
  const HashArgs args = *static_cast<const HashArgs*>(raw);
  const std::uint64_t total = std::uint64_t{args.layers} * args.tokens;
  if (total == 0) return;
  SLACKTIER_LAUNCH(hash_token_id, blocks_of(total, kernel_block_threads), kernel_block_threads, native_stream, args);
}

template <class Part, class Shape, class Out>
static void launch_gather_shape(void* native_stream, const GatherArgs& args) {
  const auto kernel = gather_parts<Part, Shape, Out>;
  SLACKTIER_LAUNCH(kernel, blocks_of(args.lookups, Shape::rows), Shape::threads, native_stream, args);
}

template <class Out>
static void launch_gather_to(void* native_stream, const GatherArgs& args) {
  const auto places = reinterpret_cast<std::uintptr_t>(args.cache.values) | reinterpret_cast<std::uintptr_t>(args.pool) |
                      reinterpret_cast<std::uintptr_t>(args.table) | args.row_bytes | args.page_bytes;
  if (args.format == RecordFormat::bf16 && args.row_values % Bf16Part::values == 0)
    launch_gather_shape<Bf16Part, GatherShape<16, 256, 0>, Out>(native_stream, args);
  else if (args.format == RecordFormat::bf16)
    launch_gather_shape<Bf16Single, GatherShape<16, 256, 0>, Out>(native_stream, args);
  else if (args.row_values == 256 && places % 8 == 0)
    launch_gather_shape<AlignedFp8Part, GatherShape<8, 256, 256>, Out>(native_stream, args);
  else
    launch_gather_shape<Fp8Part, GatherShape<16, 256, 0>, Out>(native_stream, args);
}

[[maybe_unused]] static void launch_gather(void* native_stream, const void* raw) {
  const GatherArgs args = *static_cast<const GatherArgs*>(raw);
  if (args.lookups == 0) return;
  if (args.output == OutputFormat::fp32)
    launch_gather_to<std::uint32_t>(native_stream, args);
  else
    launch_gather_to<std::uint16_t>(native_stream, args);
}

[[maybe_unused]] static void launch_store(void* native_stream, const void* raw) {
  const StoreArgs args = *static_cast<const StoreArgs*>(raw);
  const std::uint64_t total = std::uint64_t{args.count} * args.row_bytes;
  if (total == 0) return;
  const std::uint32_t blocks = blocks_of(total, kernel_block_threads);
  SLACKTIER_LAUNCH(store_bytes, blocks < 4096 ? blocks : 4096, kernel_block_threads, native_stream, args);
}

}  // namespace slacktier
