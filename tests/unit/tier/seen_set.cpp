// Seen-sets against a set of rows, and what is refused.
#include "tier/seen_set.hpp"

#include <cstdint>
#include <filesystem>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/hash.hpp"

using namespace slacktier;
using namespace slacktier::test;

namespace {

std::vector<std::uint32_t> random_context(const TableSpec& spec, std::size_t tokens, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> ids(tokens), context(tokens * static_cast<std::size_t>(spec.max_ngram));
  for (auto& id : ids) id = static_cast<std::uint32_t>(random() % 50);
  gather_context(spec, ids, 0, tokens, context.data());
  return context;
}

std::string refusal(const std::string& path, const TableSpec& spec, ShardMap map = ShardMap::contiguous,
                    std::uint32_t ranks = 2, std::uint32_t rank = 0) {
  try {
    SeenSet::load(path, spec, map, ranks, rank);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a seen-set holds the rows that were hashed and no others, in every shard", "[seen_set]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 3000);
  const auto hash = make_hash(spec);
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    constexpr std::uint32_t ranks = 3;
    SeenSetBuilder builder(spec, map, ranks);
    std::vector<std::set<std::uint32_t>> seen(spec.layers.size());
    for (const std::uint64_t session : {1, 2, 3}) {
      const std::size_t tokens = 100 * session;
      const auto context = random_context(spec, tokens, session);
      builder.add(context);
      builder.end_session();
      std::vector<std::uint32_t> rows(tokens * spec.rows_per_token());
      for (std::size_t l = 0; l < spec.layers.size(); ++l) {
        hash->rows(l, context.data(), tokens, rows.data());
        seen[l].insert(rows.begin(), rows.end());
      }
    }
    const std::string path = scratch.file(std::string("set-") + to_string(map));
    const SeenSetHeader written = builder.write(path, "three sessions");
    REQUIRE(written.tokens == 600);
    REQUIRE(written.sessions == 3);
    const SeenSetHeader header = read_seen_set_header(path);
    REQUIRE(header.origin == "three sessions");
    REQUIRE(header.shards.size() == spec.layers.size() * ranks);
    std::vector<std::uint64_t> total(spec.layers.size());
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto set = SeenSet::load(path, spec, map, ranks, rank);
      for (std::size_t l = 0; l < spec.layers.size(); ++l) {
        const Shard shard = make_shard(spec, l, map, ranks, rank);
        std::uint64_t here = 0;
        for (std::uint64_t row = 0; row < shard.rows; ++row) {
          REQUIRE(set->seen(l, row) == seen[l].contains(static_cast<std::uint32_t>(shard.global_row(row))));
          here += set->seen(l, row);
        }
        total[l] += here;
        for (const auto& entry : header.shards)
          if (entry.layer == spec.layers[l].layer && entry.rank == rank) REQUIRE(entry.seen == here);
      }
    }
    for (std::size_t l = 0; l < spec.layers.size(); ++l) REQUIRE(total[l] == seen[l].size());
  }
}

TEST_CASE("seen-sets of another table, seed or shard are refused with the field named", "[seen_set]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 3000);
  SeenSetBuilder builder(spec, ShardMap::contiguous, 2);
  builder.add(random_context(spec, 200, 1));
  const std::string path = scratch.file("set");
  builder.write(path, "a session");
  REQUIRE(refusal(path, spec).empty());
  REQUIRE(refusal(path, small_engram(scratch, 3000, "other")).find("table is small") != std::string::npos);
  std::string other_seed = scratch.read("small.json");
  other_seed.replace(other_seed.find("\"seed\": 0"), 9, "\"seed\": 7");
  const TableSpec reseeded = load_table_spec(scratch.write("seven/small.json", other_seed));
  REQUIRE(refusal(path, reseeded).find("fingerprint") != std::string::npos);
  REQUIRE(refusal(path, spec, ShardMap::striped).find("shard_map is contiguous") != std::string::npos);
  REQUIRE(refusal(path, spec, ShardMap::contiguous, 4).find("ranks is 2") != std::string::npos);
}

TEST_CASE("damaged seen-sets are refused, wherever the damage is", "[seen_set]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  SeenSetBuilder builder(spec, ShardMap::contiguous, 2);
  builder.add(random_context(spec, 50, 1));
  const std::string path = scratch.file("set");
  builder.write(path, "a session");
  const std::string whole = scratch.read("set");
  std::size_t refused = 0, trials = 0;
  for (std::size_t at = 0; at < whole.size(); at += 1 + whole.size() / 300) {
    scratch.write("set", whole);
    scratch.damage("set", at);
    // Bytes of the other rank's bitmaps and free text in the header do not matter to this one.
    bool wrong_bits = false;
    try {
      const auto set = SeenSet::load(path, spec, ShardMap::contiguous, 2, 0);
      scratch.write("good", whole);
      const auto good = SeenSet::load(scratch.file("good"), spec, ShardMap::contiguous, 2, 0);
      for (std::size_t l = 0; l < spec.layers.size(); ++l)
        wrong_bits = wrong_bits || !std::equal(set->bits(l).begin(), set->bits(l).end(), good->bits(l).begin());
    } catch (const UsageError&) {
      ++refused;
    }
    REQUIRE_FALSE(wrong_bits);
    ++trials;
  }
  REQUIRE(refused > trials / 4);
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{11}, std::size_t{100}, whole.size() / 2}) {
    scratch.write("set", whole.substr(0, length));
    REQUIRE_FALSE(refusal(path, spec).empty());
  }
  REQUIRE(refusal(scratch.file("none"), spec).find("cannot be opened") != std::string::npos);
}
