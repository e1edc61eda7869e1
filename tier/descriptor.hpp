// One u64 per lookup: what the gather needs to find the row. Written by the step core, read by kernels.
#pragma once

#include <cstdint>

#include "platforms/host_device.hpp"

namespace slacktier {

enum class LookupKind : std::uint32_t {
  zero = 0,      // padded, not owned, or failed: the row is delivered as zeros
  hit = 1,       // row in the GPU cache: slot
  miss = 2,      // row in a pool page: buffer and record; filled into slot unless that is no_slot
  resident = 3,  // row in the layer's resident table: row
};

inline constexpr std::uint32_t no_slot = 0x1FFFFFFF;    // 29 bits
inline constexpr std::uint32_t max_slots = no_slot;     // slots are [0, max_slots)
inline constexpr std::uint32_t max_buffers = 1u << 24;  // pool buffers are [0, max_buffers)

// Bits from the low end: kind 2, record 8, buffer 24, slot 29. A resident row uses bits 2 to 33.
struct Descriptor {
  std::uint64_t bits = 0;

  static constexpr Descriptor zero() { return {}; }
  static constexpr Descriptor hit(std::uint32_t slot) { return {1u | std::uint64_t{slot} << 34}; }
  static constexpr Descriptor miss(std::uint32_t buffer, std::uint32_t record, std::uint32_t slot) {
    return {2u | std::uint64_t{record} << 2 | std::uint64_t{buffer} << 10 | std::uint64_t{slot} << 34};
  }
  static constexpr Descriptor resident(std::uint32_t row) { return {3u | std::uint64_t{row} << 2}; }

  SLACKTIER_HOST_DEVICE constexpr LookupKind kind() const { return static_cast<LookupKind>(bits & 3); }
  SLACKTIER_HOST_DEVICE constexpr std::uint32_t record() const { return static_cast<std::uint32_t>(bits >> 2) & 0xFF; }
  SLACKTIER_HOST_DEVICE constexpr std::uint32_t buffer() const { return static_cast<std::uint32_t>(bits >> 10) & 0xFFFFFF; }
  SLACKTIER_HOST_DEVICE constexpr std::uint32_t slot() const { return static_cast<std::uint32_t>(bits >> 34) & 0x1FFFFFFF; }
  SLACKTIER_HOST_DEVICE constexpr std::uint32_t row() const { return static_cast<std::uint32_t>(bits >> 2); }
};
static_assert(sizeof(Descriptor) == 8);

}  // namespace slacktier
