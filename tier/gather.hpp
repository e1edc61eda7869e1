// The tier's kernels as launches see them: the hash at step start and the dequantising gather behind each gate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "platforms/device.hpp"
#include "tier/descriptor.hpp"
#include "tier/hash.hpp"
#include "tier/output.hpp"
#include "tier/table.hpp"

namespace slacktier {

// Kernel "tier.hash", and those that KernelHash names: rows of every layer. context is [tokens][max_ngram], rows is
// [layers][tokens][rows_per_token].
struct HashArgs {
  const RowHash* hash = nullptr;          // for the host's kernel
  const std::byte* parameters = nullptr;  // for the others
  const std::uint32_t* context = nullptr;
  std::uint32_t* rows = nullptr;
  std::uint32_t tokens = 0, layers = 0, rows_per_token = 0;
};

// The GPU cache of one layer: values and scales in arrays of their own, so that both are read in whole vectors.
// FP8 records: row_values bytes and row_values / 32 bytes; BF16 records: one array.
struct CacheArrays {
  std::byte* values = nullptr;
  std::byte* scales = nullptr;
  std::uint32_t value_bytes = 0, scale_bytes = 0;
};
CacheArrays cache_layout(const TableSpec& spec);  // sizes set, pointers null

// Kernel "tier.gather": lookups rows of row_values numbers, in lookup order; misses with a slot are filled into the cache.
struct GatherArgs {
  const Descriptor* descriptors = nullptr;
  const std::byte* pool = nullptr;   // page pool
  const std::byte* table = nullptr;  // [rows][row_bytes] of a resident layer, anywhere the device reads
  CacheArrays cache;
  void* out = nullptr;                // [lookups][row_values] of `output`, 16-byte aligned
  const std::uint32_t* at = nullptr;  // row of `out` for each descriptor; null: in order
  std::uint32_t lookups = 0, row_values = 0, row_bytes = 0, page_bytes = 0;
  RecordFormat format = RecordFormat::fp8_e4m3_block32;
  OutputFormat output = OutputFormat::bf16;
};

// Kernel "tier.store": writes `count` records into slots of the cache.
struct StoreArgs {
  const std::byte* records = nullptr;  // [count][row_bytes]
  const std::uint32_t* slots = nullptr;
  CacheArrays cache;
  std::uint32_t count = 0, row_bytes = 0;
};

// The kernels for every backend that was built.
std::span<const ModuleImage> tier_modules();

}  // namespace slacktier
