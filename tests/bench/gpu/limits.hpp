// Kernels that move what a gather moves and do nothing else; addresses are the device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "platforms/device.hpp"

namespace slacktier {

struct NothingArgs {};

// "limit.rows": row i is read from base + offsets[i], 8 bytes a thread, and written as out_bytes of its own.
struct RowsArgs {
  const std::byte* base = nullptr;
  const std::uint64_t* offsets = nullptr;  // multiples of 8
  std::byte* out = nullptr;
  std::uint32_t rows = 0, row_bytes = 0, out_bytes = 0;  // multiples of 8 and 16; out_bytes at most twice row_bytes
};

// "limit.copy" and "limit.copy.1024", with blocks of 256 and 1024 threads: the same bytes from and to one place each, and
// `words` besides, which nothing depends on.
struct CopyArgs {
  const std::byte* from = nullptr;
  std::byte* out = nullptr;
  const std::uint64_t* words = nullptr;
  std::uint32_t read_bytes = 0, written_bytes = 0;  // multiples of 8 and 16
  std::uint32_t word_count = 0;                     // at most as many as there are threads
};

// "limit.copy.early": the same launched before the kernel in front of it is over, as gathers ".early" are.
// "limit.chain", of RowsArgs: as "limit.rows", with offsets in host memory, read once a block; rows of 256 bytes.

// "gather.ROWSxTHREADS": the tier's gather of 256 FP8 values laid out otherwise; "rows.…": one that is written otherwise
// (see gather_rows in limits.cu). Arguments are GatherArgs.
struct ShapeName {
  std::string_view kernel;
};
std::span<const ShapeName> gather_shapes();

std::span<const ModuleImage> limit_modules();

}  // namespace slacktier
