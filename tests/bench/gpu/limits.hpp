// Kernels that move what a gather moves and do nothing else; addresses are the device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

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

// "limit.copy": the same bytes from and to one place each.
struct CopyArgs {
  const std::byte* from = nullptr;
  std::byte* out = nullptr;
  std::uint32_t read_bytes = 0, written_bytes = 0;  // multiples of 8 and 16
};

std::span<const ModuleImage> limit_modules();

}  // namespace slacktier
