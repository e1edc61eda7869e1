// The rows of a whole token sequence, by the hash that a step runs on the device: for comparison with other implementations.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "platforms/device.hpp"
#include "tier/table.hpp"

namespace slacktier {

// [tokens][rows_per_token] global rows of one layer for one sequence of hash ids (below spec.vocabulary), from its first
// token on. Throws UsageError where the hash has no kernel for the device.
std::vector<std::uint32_t> sequence_rows(Device& device, const TableSpec& spec, std::size_t layer_index,
                                         std::span<const std::uint32_t> sequence);

}  // namespace slacktier
