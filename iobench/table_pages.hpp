// How many pages a step of a table reads, when nobody says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "iobench/draw.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct TablePages {
  std::vector<LayerPages> pages;  // per rank, of the rank that reads most
  std::string label;              // where the numbers come from
};

// Without a cache: every lookup that a rank owns at batch B is a page, the rank with most columns counts.
TablePages uncached_pages(const TableSpec& spec, ShardMap map, std::uint32_t ranks, std::uint32_t batch);

// From a misses file: mean pages a step at `cache_rows` per layer and rank (the curve's nearest smaller capacity), slowest
// rank, in proportion from the file's sessions to `batch`. Throws InputError naming file and field.
TablePages pages_from_misses(const std::string& path, const std::vector<int>& layers, std::uint64_t cache_rows,
                             std::uint32_t batch);

}  // namespace slacktier
