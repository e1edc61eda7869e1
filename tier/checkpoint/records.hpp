// From a checkpoint's bytes to records as the tier stores and gathers them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "tier/table.hpp"

namespace slacktier {

enum class ScaleType { none, e8m0, fp32, bf16 };

// How rows of one layer become records. Row bytes of weights and scales lie packed, row after row.
struct RecordMaker {
  RecordFormat format = RecordFormat::bf16;
  bool fp8_weight = false;  // else BF16
  ScaleType scale = ScaleType::none;
  std::uint32_t values = 0;       // of a record
  std::uint32_t scale_count = 0;  // scales of a row; each counts for values / scale_count values

  std::uint32_t weight_bytes() const { return values * (fp8_weight ? 1 : 2); }
  std::uint32_t scale_bytes() const;
  // One record. Returns the index of the first scale that the format cannot store, or -1.
  int make(const std::byte* weight, const std::byte* scales, std::byte* out) const;
};

}  // namespace slacktier
