// Which rows of a layer's table one of R tensor-parallel ranks owns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tier/table.hpp"

namespace slacktier {

enum class ShardMap {
  contiguous,  // rank r owns rows [r * ceil(rows / R), (r + 1) * ceil(rows / R)): the released engines' map
  striped,     // head (column) c belongs to rank c mod R; a rank's heads lie one after another in head order
};
ShardMap parse_shard_map(const std::string& text);  // throws UsageError
const char* to_string(ShardMap map);

// One rank's share of one layer. Column c's lookups with first[c] <= row < last[c] are owned; their local row is
// row - first[c] + local[c]. Columns owned in no part have first == last.
struct Shard {
  ShardMap map = ShardMap::contiguous;
  std::uint32_t ranks = 1, rank = 0;
  std::uint64_t rows = 0;                  // rows owned
  std::vector<std::uint32_t> first, last;  // global rows, per column
  std::vector<std::uint32_t> local;        // local row of first[c]

  // Global row of a local one (< rows).
  std::uint64_t global_row(std::uint64_t local_row) const;
  // Rows of the shard from a local one (< rows) on whose global rows follow one another.
  std::uint64_t run(std::uint64_t local_row) const;
};

// Throws UsageError when rank >= ranks, or striped needs more ranks than there are heads.
Shard make_shard(const TableSpec& spec, std::size_t layer_index, ShardMap map, std::uint32_t ranks, std::uint32_t rank);

}  // namespace slacktier
