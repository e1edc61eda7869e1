// Hot sets for caches of policy "static": read from a file, or learnt from the warm-up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/interleave.hpp"
#include "tier/hash.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

// A file of kind hot-rows: global rows by model layer, hottest first. Rows of other ranks are fine: each takes its own.
// Throws InputError naming file and field for another table, unknown layers and rows beyond the table.
std::map<int, std::vector<std::uint32_t>> read_hot_rows(const std::string& path, const TableSpec& spec);

// Of global rows those that the shard owns, as local rows in the same order.
std::vector<std::uint32_t> owned_rows(const std::vector<std::uint32_t>& global_rows, const Shard& shard);

// The n local rows of a layer's shard that the first `steps` steps of the trace ask for most, prefill included, most first.
std::vector<std::uint32_t> learn_hot_rows(const StepTrace& trace, std::uint64_t steps, const TableSpec& spec,
                                          const RowHash& hash, std::size_t layer_index, const Shard& shard, std::size_t n);

}  // namespace slacktier
