#include "tier/shard.hpp"

#include <cstdint>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Every row of the table belongs to one rank and has one local row there; global_row leads back.
void check_partition(const TableSpec& spec, std::size_t layer, ShardMap map, std::uint32_t ranks, std::uint64_t stride) {
  const LayerTable& table = spec.layers[layer];
  std::vector<Shard> shards;
  std::uint64_t owned = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    shards.push_back(make_shard(spec, layer, map, ranks, rank));
    owned += shards.back().rows;
  }
  REQUIRE(owned == (map == ShardMap::contiguous ? table.rows : table.head_offset.back()));
  for (std::size_t c = 0; c < spec.rows_per_token(); ++c) {
    for (std::uint64_t row = table.head_offset[c]; row < table.head_offset[c + 1]; row += stride) {
      int owners = 0;
      for (const Shard& shard : shards) {
        if (row < shard.first[c] || row >= shard.last[c]) continue;
        ++owners;
        const std::uint64_t local = row - shard.first[c] + shard.local[c];
        REQUIRE(local < shard.rows);
        REQUIRE(shard.global_row(local) == row);
      }
      REQUIRE(owners == 1);
    }
  }
}

TableSpec small_table() {
  TableSpec spec;
  spec.name = "small";
  spec.order = {2, 2, 3};
  spec.layers = {{0, {0, 5, 12, 30}, 33, {1, 1, 1}}};
  return spec;
}

}  // namespace

TEST_CASE("every row has one rank and one local row", "[shard]") {
  const TableSpec small = small_table();
  for (const std::uint32_t ranks : {1U, 2U, 3U, 4U, 7U, 33U, 40U}) check_partition(small, 0, ShardMap::contiguous, ranks, 1);
  for (const std::uint32_t ranks : {1U, 2U, 3U}) check_partition(small, 0, ShardMap::striped, ranks, 1);
  for (const char* name : {"engram_v41", "qwen38_ple"}) {
    const TableSpec spec = load_table_spec(name);
    for (const std::uint32_t ranks : {1U, 4U, 5U, 8U, 16U}) {
      for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) check_partition(spec, 0, map, ranks, 99'991);
    }
  }
}

TEST_CASE("local rows of a shard cover it without a gap", "[shard]") {
  const TableSpec small = small_table();
  const Shard striped = make_shard(small, 0, ShardMap::striped, 2, 0);  // heads 0 and 2
  CHECK(striped.rows == 5 + 18);
  std::vector<std::uint64_t> rows;
  for (std::uint64_t local = 0; local < striped.rows; ++local) rows.push_back(striped.global_row(local));
  CHECK(rows.front() == 0);
  CHECK(rows[4] == 4);
  CHECK(rows[5] == 12);
  CHECK(rows.back() == 29);
  // The padding behind the last head belongs to the last ranks, also to one that owns nothing else.
  CHECK(make_shard(small, 0, ShardMap::contiguous, 4, 3).global_row(5) == 32);
  const Shard padding = make_shard(small, 0, ShardMap::contiguous, 11, 10);
  CHECK(padding.rows == 3);
  CHECK(padding.global_row(0) == 30);
}

TEST_CASE("quarters of the V4.1 table are six heads each", "[shard]") {
  const TableSpec spec = load_table_spec("engram_v41");
  for (std::size_t layer = 0; layer < 2; ++layer) {
    const std::uint64_t share = (spec.layers[layer].rows + 3) / 4;
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      const Shard shard = make_shard(spec, layer, ShardMap::contiguous, 4, rank);
      CHECK(shard.rows == (rank < 3 ? share : spec.layers[layer].rows - 3 * share));
      for (std::size_t c = 0; c < 24; ++c) {
        // Heads differ by a few hundred rows, so a border lies at most some thousands of rows inside the next quarter's
        // head.
        const std::uint64_t owned = shard.last[c] - shard.first[c];
        const std::uint64_t head = spec.layers[layer].head_offset[c + 1] - spec.layers[layer].head_offset[c];
        if (c / 6 == rank) {
          CHECK(owned + 5000 > head);
        } else {
          CHECK(owned < 5000);
        }
        if (rank == 0 && spec.order[c] != 2) CHECK(owned == 0);
        if (rank == 3 && spec.order[c] != 4) CHECK(owned == 0);
      }
    }
  }
}

TEST_CASE("impossible shards are refused", "[shard]") {
  const TableSpec spec = load_table_spec("engram_v41");
  CHECK_THROWS_WITH(make_shard(spec, 0, ShardMap::contiguous, 4, 4), contains_text("rank 4 of 4"));
  CHECK_THROWS_WITH(make_shard(spec, 0, ShardMap::contiguous, 0, 0), contains_text("rank 0 of 0"));
  CHECK_THROWS_WITH(make_shard(spec, 0, ShardMap::striped, 25, 0), contains_text("24 heads"));
  TableSpec large = spec;
  large.layers[0].rows = std::uint64_t{1} << 32;
  CHECK_THROWS_WITH(make_shard(large, 0, ShardMap::contiguous, 4, 0), contains_text("32-bit"));
  CHECK(parse_shard_map("striped") == ShardMap::striped);
  CHECK(std::string(to_string(parse_shard_map("contiguous"))) == "contiguous");
  CHECK_THROWS_AS(parse_shard_map("round-robin"), UsageError);
}
