#include "tier/shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"

namespace slacktier {

ShardMap parse_shard_map(const std::string& text) {
  if (text == "contiguous") return ShardMap::contiguous;
  if (text == "striped") return ShardMap::striped;
  throw UsageError(fmt::format("unknown shard map \"{}\": use contiguous or striped", text));
}

const char* to_string(ShardMap map) { return map == ShardMap::contiguous ? "contiguous" : "striped"; }

namespace {

// Striped: the column that holds a local row. The owned columns are every ranks-th, with rising local starts.
std::size_t striped_column(const Shard& shard, std::uint64_t local_row) {
  std::size_t owned = 0, above = (shard.first.size() - shard.rank + shard.ranks - 1) / shard.ranks;
  while (above - owned > 1) {
    const std::size_t middle = (owned + above) / 2;
    (shard.local[shard.rank + middle * shard.ranks] <= local_row ? owned : above) = middle;
  }
  return shard.rank + owned * shard.ranks;
}

}  // namespace

std::uint64_t Shard::global_row(std::uint64_t local_row) const {
  // Contiguous shards keep first - local constant over all columns, so rows of the padding behind the last head work too.
  if (map == ShardMap::contiguous) return first[0] - local[0] + local_row;
  const std::size_t column = striped_column(*this, local_row);
  return first[column] + (local_row - local[column]);
}

std::uint64_t Shard::run(std::uint64_t local_row) const {
  if (map == ShardMap::contiguous) return rows - local_row;
  const std::size_t column = striped_column(*this, local_row);
  return last[column] - first[column] - (local_row - local[column]);
}

Shard make_shard(const TableSpec& spec, std::size_t layer_index, ShardMap map, std::uint32_t ranks, std::uint32_t rank) {
  const LayerTable& table = spec.layers.at(layer_index);
  const std::size_t columns = spec.rows_per_token();
  if (ranks == 0 || rank >= ranks) throw UsageError(fmt::format("rank {} of {} ranks: ranks count from 0", rank, ranks));
  if (table.rows > UINT32_MAX) {
    throw UsageError(
        fmt::format("table {}, layer {}: {} rows do not fit 32-bit row indices", spec.name, table.layer, table.rows));
  }
  Shard shard{map, ranks, rank, 0, {}, {}, {}};
  const auto add = [&shard](std::uint64_t first, std::uint64_t last, std::uint64_t local) {
    shard.first.push_back(static_cast<std::uint32_t>(first));
    shard.last.push_back(static_cast<std::uint32_t>(last));
    shard.local.push_back(static_cast<std::uint32_t>(local));
  };
  if (map == ShardMap::contiguous) {
    const std::uint64_t share = (table.rows + ranks - 1) / ranks;
    const std::uint64_t low = std::min(share * rank, table.rows), high = std::min(low + share, table.rows);
    shard.rows = high - low;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint64_t first = std::clamp(table.head_offset[c], low, high);
      add(first, std::clamp(table.head_offset[c + 1], low, high), first - low);
    }
    return shard;
  }
  if (ranks > columns) {
    throw UsageError(fmt::format("table {} has {} heads: a striped map deals them to at most as many ranks, not {}",
                                 spec.name, columns, ranks));
  }
  for (std::size_t c = 0; c < columns; ++c) {
    const bool owned = c % ranks == rank;
    const std::uint64_t first = table.head_offset[c], last = table.head_offset[c + 1];
    add(first, owned ? last : first, shard.rows);
    if (owned) shard.rows += last - first;
  }
  return shard;
}

}  // namespace slacktier
