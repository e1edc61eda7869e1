// Counts of rows against a map, and which rows of a list a rank owns.
#include "harness/row_counts.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "harness/hot_rows.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("the hottest rows are those that a map counts most", "[row_counts]") {
  std::mt19937_64 random(3);
  RowCounts counts;
  std::map<std::uint32_t, std::uint32_t> expected;
  for (int wave = 0; wave < 12; ++wave) {
    std::vector<std::uint32_t> rows(random() % 300'000);
    for (auto& row : rows) {
      row = static_cast<std::uint32_t>(random() % 3000 * (random() % 3000) / 100);
      ++expected[row];
    }
    counts.add(rows);
    if (wave % 4 != 3) continue;  // asked in between, and again with more
    std::vector<std::pair<std::uint32_t, std::uint32_t>> order(expected.begin(), expected.end());
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{500}, order.size(), order.size() + 5}) {
      const auto hottest = counts.hottest(n);
      REQUIRE(hottest.size() == std::min(n, order.size()));
      for (std::size_t i = 0; i < hottest.size(); ++i) REQUIRE(hottest[i] == order[i].first);
    }
  }
}

TEST_CASE("each rank takes its own of a list of rows, in the list's order", "[row_counts]") {
  const TableSpec spec = load_table_spec("engram_v41");
  std::mt19937_64 random(5);
  std::vector<std::uint32_t> rows(2000);
  for (auto& row : rows) row = static_cast<std::uint32_t>(random() % spec.layers[0].head_offset.back());
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    std::size_t owned = 0;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const Shard shard = make_shard(spec, 0, map, 4, rank);
      std::size_t at = 0;
      for (const std::uint32_t local : owned_rows(rows, shard)) {
        REQUIRE(local < shard.rows);
        const std::uint64_t row = shard.global_row(local);
        while (at < rows.size() && rows[at] != row) ++at;
        REQUIRE(at < rows.size());
        ++at;
        ++owned;
      }
    }
    REQUIRE(owned == rows.size());
  }
}
