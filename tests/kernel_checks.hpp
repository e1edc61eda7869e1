// Checks of the tier's kernels that any device can be put to: what they deliver, bit for bit against tier/numerics.hpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "tests/catch.hpp"
#include "tests/kernel_bench.hpp"
#include "tier/gather.hpp"
#include "tier/numerics.hpp"
#include "tier/pages.hpp"

namespace slacktier::testing {

struct GatherCase {
  RecordFormat format = RecordFormat::fp8_e4m3_block32;
  std::uint32_t row_values = 256;
  std::uint32_t lookups = 3000;
  std::uint32_t slots = 1000, table_rows = 5000, buffers = 200;
  std::uint64_t seed = 1;
  OutputFormat output = OutputFormat::bf16;
};

// Delivered numbers as bits, of either output.
inline std::vector<std::uint32_t> fetch_numbers(KernelBench& bench, const GatherArgs& args, std::size_t n) {
  if (args.output == OutputFormat::fp32) return bench.fetch(static_cast<const std::uint32_t*>(args.out), n);
  const auto halves = bench.fetch(static_cast<const std::uint16_t*>(args.out), n);
  return {halves.begin(), halves.end()};
}
inline std::uint32_t dequantise(std::byte value, std::byte scale, OutputFormat output) {
  const auto v = static_cast<std::uint8_t>(value), s = static_cast<std::uint8_t>(scale);
  return output == OutputFormat::fp32 ? dequantise_fp32(v, s) : dequantise_bf16(v, s);
}

// Random lookups of all kinds: the rows that come out and the cache that is left are those of the definition.
inline void check_gather(Device& device, const GatherCase& wanted) {
  TableSpec spec;
  spec.format = wanted.format;
  spec.row_values = wanted.row_values;
  const bool fp8 = wanted.format == RecordFormat::fp8_e4m3_block32;
  spec.row_bytes = fp8 ? wanted.row_values + wanted.row_values / 32 : wanted.row_values * 2;
  const PageGeometry geometry = make_page_geometry(4096, spec.row_bytes);
  std::mt19937_64 random(wanted.seed);
  const auto random_bytes = [&](std::size_t n) {
    std::vector<std::byte> bytes(n);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
  };
  GatherArgs args;
  args.cache = cache_layout(spec);
  const std::size_t cache_values = std::size_t{wanted.slots} * args.cache.value_bytes;
  std::vector<std::byte> cache = random_bytes(cache_values + std::size_t{wanted.slots} * args.cache.scale_bytes);
  const std::vector<std::byte> table = random_bytes(std::size_t{wanted.table_rows} * spec.row_bytes);
  const std::vector<std::byte> pool = random_bytes(std::size_t{wanted.buffers} * geometry.page_bytes);

  // Slots below the middle are hit, those above are filled, each at most once.
  std::vector<Descriptor> descriptors;
  std::uint32_t next_fill = wanted.slots / 2;
  for (std::uint32_t i = 0; i < wanted.lookups; ++i) {
    const auto buffer = static_cast<std::uint32_t>(random() % wanted.buffers);
    const auto record = static_cast<std::uint32_t>(random() % geometry.rows_per_page);
    switch (random() % 5) {
      case 0:
        descriptors.push_back(Descriptor::zero());
        break;
      case 1:
        descriptors.push_back(Descriptor::hit(static_cast<std::uint32_t>(random() % (wanted.slots / 2))));
        break;
      case 2:
        descriptors.push_back(Descriptor::miss(buffer, record, no_slot));
        break;
      case 3:
        descriptors.push_back(Descriptor::miss(buffer, record, next_fill < wanted.slots ? next_fill++ : no_slot));
        break;
      default:
        descriptors.push_back(Descriptor::resident(static_cast<std::uint32_t>(random() % wanted.table_rows)));
    }
  }

  KernelBench bench(device);
  std::byte* const device_cache = bench.on_device(cache);
  args.descriptors = bench.mapped(descriptors);
  args.pool = bench.mapped(pool);
  args.table = bench.mapped(table);
  args.cache.values = device_cache;
  args.cache.scales = device_cache + cache_values;
  args.output = wanted.output;
  args.out = bench.on_device(
      std::vector<std::uint16_t>(std::size_t{wanted.lookups} * spec.row_values * output_bytes(args.output) / 2, 0xABCD));
  args.lookups = wanted.lookups;
  args.row_values = spec.row_values;
  args.row_bytes = spec.row_bytes;
  args.page_bytes = geometry.page_bytes;
  args.format = spec.format;
  // Every second case delivers to rows in another order.
  std::vector<std::uint32_t> at(wanted.lookups);
  std::iota(at.begin(), at.end(), 0u);
  if (wanted.seed % 2 == 1) {
    std::shuffle(at.begin(), at.end(), random);
    args.at = bench.mapped(at);
  }
  bench.stream().launch("tier.gather", args);
  const auto out = fetch_numbers(bench, args, std::size_t{wanted.lookups} * spec.row_values);

  std::uint64_t wrong = 0;
  for (std::uint32_t i = 0; i < wanted.lookups; ++i) {
    const Descriptor d = descriptors[i];
    const std::byte* values = nullptr;
    const std::byte* scales = nullptr;
    if (d.kind() == LookupKind::hit) {
      values = cache.data() + std::size_t{d.slot()} * args.cache.value_bytes;
      scales = cache.data() + cache_values + std::size_t{d.slot()} * args.cache.scale_bytes;
    } else if (d.kind() != LookupKind::zero) {
      values = d.kind() == LookupKind::miss
                   ? pool.data() + std::size_t{d.buffer()} * geometry.page_bytes + std::size_t{d.record()} * spec.row_bytes
                   : table.data() + std::size_t{d.row()} * spec.row_bytes;
      scales = values + args.cache.value_bytes;
    }
    for (std::uint32_t v = 0; v < spec.row_values; ++v) {
      std::uint32_t expected = 0;
      if (values != nullptr && fp8) {
        expected = dequantise(values[v], scales[v / 32], args.output);
      } else if (values != nullptr) {
        std::memcpy(&expected, values + 2 * v, 2);
        if ((expected & 0x7FFFu) > 0x7F80u) expected = bf16_nan;
        if (args.output == OutputFormat::fp32) expected <<= 16;
      }
      wrong += out[std::size_t{at[i]} * spec.row_values + v] != expected;
    }
    if (d.kind() == LookupKind::miss && d.slot() != no_slot) {
      std::memcpy(cache.data() + std::size_t{d.slot()} * args.cache.value_bytes, values, args.cache.value_bytes);
      if (fp8)
        std::memcpy(cache.data() + cache_values + std::size_t{d.slot()} * args.cache.scale_bytes, scales,
                    args.cache.scale_bytes);
    }
  }
  CHECK(wrong == 0);
  CHECK(bench.fetch(device_cache, cache.size()) == cache);
}

// All 65,536 pairs of value and scale, as hits.
inline void check_every_pair(Device& device, OutputFormat output) {
  KernelBench bench(device);
  GatherArgs args = every_pair(bench, output);
  args.out = bench.on_device(std::vector<std::uint32_t>(65536));
  bench.stream().launch("tier.gather", args);
  const auto out = fetch_numbers(bench, args, 65536);
  std::string wrong;
  for (std::uint32_t scale = 0; scale < 256; ++scale)
    for (std::uint32_t value = 0; value < 256; ++value)
      if (out[scale * 256 + value] != dequantise(static_cast<std::byte>(value), static_cast<std::byte>(scale), output) &&
          wrong.size() < 200)
        wrong += std::to_string(value) + " at scale " + std::to_string(scale) + "; ";
  CHECK(wrong == "");
}

// Rows of every layer for random tokens, with pad and end-of-segment among them: those of the RowHash.
inline void check_hash(Device& device, const std::string& table, std::uint32_t tokens, std::uint64_t seed) {
  TableSpec spec = load_table_spec(table);
  if (spec.hash == "token_id") spec.vocabulary += 1000;  // ids that the table does not hold
  const auto hash = make_hash(spec);
  const KernelHash kernel = hash->for_kernels();
  REQUIRE(kernel.kernel.starts_with("tier.hash."));
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> sequence(tokens);
  for (auto& id : sequence) {
    id = static_cast<std::uint32_t>(random() % spec.vocabulary);
    if (random() % 16 == 0) id = static_cast<std::uint32_t>(spec.pad);
    if (random() % 16 == 1 && spec.segment_end >= 0) id = static_cast<std::uint32_t>(spec.segment_end);
  }
  std::vector<std::uint32_t> context(std::size_t{tokens} * static_cast<std::uint32_t>(spec.max_ngram));
  gather_context(spec, sequence, 0, tokens, context.data());
  const std::size_t columns = spec.rows_per_token(), layers = spec.layers.size();
  KernelBench bench(device);
  HashArgs args;
  args.parameters = bench.on_device(kernel.parameters);
  args.context = bench.mapped(context);
  args.rows = bench.on_device(std::vector<std::uint32_t>(layers * tokens * columns));
  args.tokens = tokens;
  args.layers = static_cast<std::uint32_t>(layers);
  args.rows_per_token = static_cast<std::uint32_t>(columns);
  bench.stream().launch(kernel.kernel, args);
  const auto rows = bench.fetch(args.rows, layers * tokens * columns);
  std::vector<std::uint32_t> expected(tokens * columns);
  for (std::size_t l = 0; l < layers; ++l) {
    hash->rows(l, context.data(), tokens, expected.data());
    CHECK(std::memcmp(rows.data() + l * tokens * columns, expected.data(), expected.size() * 4) == 0);
  }
}

// Records stored into slots come out of the cache's arrays.
inline void check_store(Device& device, RecordFormat format, std::uint32_t row_values) {
  TableSpec spec;
  spec.format = format;
  spec.row_values = row_values;
  spec.row_bytes = format == RecordFormat::bf16 ? row_values * 2 : row_values + row_values / 32;
  constexpr std::uint32_t slots = 700, count = 300;
  std::mt19937_64 random(5);
  std::vector<std::byte> records(std::size_t{count} * spec.row_bytes);
  for (auto& byte : records) byte = static_cast<std::byte>(random());
  std::vector<std::uint32_t> to;
  for (std::uint32_t i = 0; i < count; ++i) to.push_back(2 * i + 1);
  StoreArgs args;
  args.cache = cache_layout(spec);
  const std::size_t values = std::size_t{slots} * args.cache.value_bytes;
  std::vector<std::byte> cache(values + std::size_t{slots} * args.cache.scale_bytes, std::byte{0x11});
  KernelBench bench(device);
  args.records = bench.mapped(records);
  args.slots = bench.mapped(to);
  args.cache.values = bench.on_device(cache);
  args.cache.scales = args.cache.values + values;
  args.count = count;
  args.row_bytes = spec.row_bytes;
  bench.stream().launch("tier.store", args);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::byte* record = records.data() + std::size_t{i} * spec.row_bytes;
    std::memcpy(cache.data() + std::size_t{to[i]} * args.cache.value_bytes, record, args.cache.value_bytes);
    if (args.cache.scale_bytes)
      std::memcpy(cache.data() + values + std::size_t{to[i]} * args.cache.scale_bytes, record + args.cache.value_bytes,
                  args.cache.scale_bytes);
  }
  CHECK(bench.fetch(args.cache.values, cache.size()) == cache);
}

// All of the above, at a size that takes a fraction of a second on one CPU core. `hash`: the device has the GPUs' hash
// kernel.
inline void check_kernels(Device& device, bool hash) {
  for (const OutputFormat output : {OutputFormat::bf16, OutputFormat::fp32}) {
    check_every_pair(device, output);
    for (const std::uint32_t values : {256u, 32u, 64u, 1024u})
      check_gather(device, {RecordFormat::fp8_e4m3_block32, values, 1501, 400, 600, 50, values, output});
    for (const std::uint32_t values : {160u, 8u, 7u, 33u})
      check_gather(device, {RecordFormat::bf16, values, 1501, 400, 600, 50, values, output});
  }
  check_gather(device, {RecordFormat::fp8_e4m3_block32, 256, 1});
  check_store(device, RecordFormat::fp8_e4m3_block32, 256);
  check_store(device, RecordFormat::bf16, 33);
  if (!hash) return;
  check_hash(device, "engram_v41", 200, 1);
  check_hash(device, "qwen38_ple", 200, 2);
  check_hash(device, "longcat_flash_lite", 200, 3);
  check_hash(device, "gemma4_e4b_ple", 200, 4);
}

}  // namespace slacktier::testing
