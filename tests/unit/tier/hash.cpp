#include "tier/hash.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/golden.hpp"
#include "tier/numpy_random.hpp"

using namespace slacktier;

namespace {

// The definition, with the machine's own division: what the fast loop must equal.
std::vector<std::uint32_t> slow_rows(const TableSpec& spec, std::size_t layer, const std::vector<std::uint32_t>& context) {
  std::vector<std::uint32_t> rows;
  const LayerTable& table = spec.layers[layer];
  for (std::size_t at = 0; at < context.size(); at += static_cast<std::size_t>(spec.max_ngram)) {
    for (std::size_t c = 0; c < spec.rows_per_token(); ++c) {
      std::uint64_t mix = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(spec.order[c]); ++i)
        mix ^= context[at + i] * table.multipliers[i];
      rows.push_back(
          static_cast<std::uint32_t>(mix % (table.head_offset[c + 1] - table.head_offset[c]) + table.head_offset[c]));
    }
  }
  return rows;
}

std::vector<std::uint32_t> context_of(const TableSpec& spec, const std::vector<std::uint32_t>& sequence, std::size_t first,
                                      std::size_t tokens) {
  std::vector<std::uint32_t> context(tokens * static_cast<std::size_t>(spec.max_ngram));
  gather_context(spec, sequence, first, tokens, context.data());
  return context;
}

std::vector<std::uint32_t> fast_rows(const TableSpec& spec, std::size_t layer, const std::vector<std::uint32_t>& context) {
  const auto tokens = context.size() / static_cast<std::size_t>(spec.max_ngram);
  std::vector<std::uint32_t> rows(tokens * spec.rows_per_token());
  make_hash(spec)->rows(layer, context.data(), tokens, rows.data());
  return rows;
}

}  // namespace

TEST_CASE("rows of the golden tokens", "[hash]") {
  const TableSpec spec = load_table_spec("engram_v41");
  const std::vector<std::uint32_t> ids(golden::compressed_ids.begin(), golden::compressed_ids.end());
  const auto context = context_of(spec, ids, 0, ids.size());
  for (const auto& [layer, wanted] : {std::pair{0, &golden::layer_1_rows}, std::pair{1, &golden::layer_14_rows}}) {
    const auto rows = fast_rows(spec, static_cast<std::size_t>(layer), context);
    for (std::size_t i = 0; i < rows.size(); ++i) REQUIRE(rows[i] == (*wanted)[i / 24][i % 24]);
  }
}

TEST_CASE("the division-free remainder is exact", "[hash]") {
  std::mt19937_64 random(7);
  for (const std::string name : {"engram_v41", "qwen38_ple"}) {
    TableSpec spec = load_table_spec(name);
    // Random ids, then the largest ids and multipliers there can be, then heads of awkward sizes.
    for (int round = 0; round < 3; ++round) {
      std::vector<std::uint32_t> context(static_cast<std::size_t>(spec.max_ngram) * 5000);
      for (std::size_t i = 0; i < context.size(); ++i) {
        context[i] = round == 1 ? spec.vocabulary - 1 - static_cast<std::uint32_t>(random() % 3)
                                : static_cast<std::uint32_t>(random() % spec.vocabulary);
      }
      for (LayerTable& table : spec.layers) {
        const std::uint64_t largest = static_cast<std::uint64_t>(INT64_MAX) / spec.vocabulary;
        for (auto& m : table.multipliers) m = round == 1 ? largest : (largest - random() % 1000);
        if (round != 2) continue;
        for (std::size_t c = 0; c < spec.rows_per_token(); ++c) {
          const std::uint64_t sizes[] = {2, 3, 1U << 16, (1U << 16) + 1, 268'435'399};
          table.head_offset[c + 1] = table.head_offset[c] + sizes[c % 3 == 0 && c < 12 ? 4 : c % 4];
        }
      }
      for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
        REQUIRE(fast_rows(spec, layer, context) == slow_rows(spec, layer, context));
      }
    }
  }
}

TEST_CASE("the remainder is exact just around multiples of the head's rows", "[hash]") {
  TableSpec spec = load_table_spec("qwen38_ple");
  LayerTable& table = spec.layers[0];
  // A single token id 1 with multiplier m gives mix = m for all heads (the other ids are 0).
  for (const std::uint64_t prime : {std::uint64_t{2}, std::uint64_t{20000003}, std::uint64_t{4294967291}}) {
    table.head_offset.assign({0, prime});
    spec.order.assign({2});
    for (const std::uint64_t top : {prime, prime * 1000, static_cast<std::uint64_t>(INT64_MAX) / prime * prime}) {
      for (std::uint64_t mix = top - 2; mix <= top + 1 && mix <= static_cast<std::uint64_t>(INT64_MAX); ++mix) {
        table.multipliers[0] = mix;
        REQUIRE(fast_rows(spec, 0, {1, 0, 0}).front() == mix % prime);
      }
    }
  }
}

TEST_CASE("look-backs before the start are the pad", "[hash]") {
  const TableSpec spec = load_table_spec("engram_v41");
  CHECK(context_of(spec, {10, 11, 12, 13, 14}, 0, 5) == std::vector<std::uint32_t>{10, 2,  2,  2,   //
                                                                                   11, 10, 2,  2,   //
                                                                                   12, 11, 10, 2,   //
                                                                                   13, 12, 11, 10,  //
                                                                                   14, 13, 12, 11});
}

TEST_CASE("look-backs do not cross an end of segment", "[hash]") {
  const TableSpec spec = load_table_spec("qwen38_ple");
  const std::uint32_t end = 248044;
  // The end of a segment still sees its own segment; what follows it sees nothing before.
  CHECK(context_of(spec, {5, 6, end, 7, 8, 9}, 0, 6) == std::vector<std::uint32_t>{5, end, end,  //
                                                                                   6, 5, end,    //
                                                                                   end, 6, 5,    //
                                                                                   7, end, end,  //
                                                                                   8, 7, end,    //
                                                                                   9, 8, 7});
  CHECK(context_of(spec, {5, end, end, 6}, 0, 4) ==
        std::vector<std::uint32_t>{5, end, end, end, 5, end, end, end, end, 6, end, end});
}

TEST_CASE("steps of a sequence give what the whole prefix gives", "[hash]") {
  std::mt19937 random(11);
  for (const std::string& name : built_in_tables()) {
    const TableSpec spec = load_table_spec(name);
    std::vector<std::uint32_t> sequence(400);
    for (auto& id : sequence) {
      id = random() % 7 == 0 && spec.segment_end >= 0 ? static_cast<std::uint32_t>(spec.segment_end)
                                                      : static_cast<std::uint32_t>(random() % spec.vocabulary);
    }
    const auto whole = context_of(spec, sequence, 0, sequence.size());
    std::vector<std::uint32_t> steps;
    for (std::size_t at = 0; at < sequence.size();) {
      const std::size_t tokens = std::min<std::size_t>(1 + random() % 5, sequence.size() - at);
      // As when decoding: the sequence ends with the step's own tokens.
      const std::vector<std::uint32_t> prefix(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(at + tokens));
      const auto step = context_of(spec, prefix, at, tokens);
      steps.insert(steps.end(), step.begin(), step.end());
      at += tokens;
    }
    CHECK(steps == whole);
  }
}

TEST_CASE("numpy's seeding, generator and bounded draws", "[hash]") {
  // Output of numpy 2.4: SeedSequence(s).generate_state(4, uint64), default_rng(s).bit_generator.random_raw(4), and
  // default_rng(s).integers(0, bound, size=6, dtype=int64).
  CHECK(numpy_seed_state(0) ==
        std::array<std::uint64_t, 4>{0xdb2cd7e7b0f478be, 0xabf4641a2c71ba49, 0x20c6ed6d9d7b8d41, 0x2c4099de223c39d4});
  CHECK(numpy_seed_state(1234567890123456789) ==
        std::array<std::uint64_t, 4>{0xbc97bbb0556f5bcd, 0xbf7907c732f6ffc8, 0x49c56da2313998eb, 0x0ac3f50dbc383d76});
  const auto raw = [](std::uint64_t seed) {
    NumpyRandom random(seed);
    return std::vector<std::uint64_t>{random.next64(), random.next64(), random.next64(), random.next64()};
  };
  CHECK(raw(0) ==
        std::vector<std::uint64_t>{11749869230777074271U, 4976686463289251617U, 755828109848996024U, 304881062738325533U});
  CHECK(raw(140098) == std::vector<std::uint64_t>{13420388419549774097U, 10208617735032736636U, 6128116274024149523U,
                                                  16373808781820707998U});
  const auto draws = [](std::uint64_t seed, std::uint64_t bound) {
    NumpyRandom random(seed);
    std::vector<std::uint64_t> values;
    for (int i = 0; i < 6; ++i) values.push_back(random.below(bound));
    return values;
  };
  using V = std::vector<std::uint64_t>;
  CHECK(draws(10007, 46540000000000) ==
        V{38316510485545, 2419967254533, 17980053170536, 36994115230924, 19978812903632, 35202124967078});
  CHECK(draws(7, 1) == V{0, 0, 0, 0, 0, 0});
  CHECK(draws(7, 10) == V{9, 6, 6, 8, 5, 7});
  CHECK(draws(7, 1000003) == V{944907, 625097, 684181, 897216, 578294, 775688});
  CHECK(draws(7, 3221225472) == V{3043751912, 2013573438, 2203897839, 1862810377, 2498658503, 2685377905});
  CHECK(draws(7, 4294967295) == V{4058335882, 2684764584, 2938530452, 3853503931, 2483747169, 3331544670});
  CHECK(draws(7, 4294967296) == V{4058335883, 2684764585, 2938530453, 3853503932, 2483747170, 3331544671});
  CHECK(draws(7, 4294967297) == V{2684764586, 3853503933, 3331544672, 967257516, 1289204377, 3751883480});
  CHECK(draws(7, 6917529027641094201) == V{4324116035284638232, 6206502512207237947, 5365828278596944620,
                                           1557877273993402772, 2076408988992589043, 6042831315724531923});
  CHECK(draws(7, 9223372036854775807) == V{5765488047046174020, 8275336682942969161, 7154437704795913392,
                                           2077169698657866656, 2768545318656780450, 8057108420966028185});
}

TEST_CASE("a hash that is not there is named with those that are", "[hash]") {
  TableSpec spec = load_table_spec("engram_v41");
  spec.hash = "polynomiol";
  CHECK_THROWS_WITH(make_hash(spec),
                    contains_text("polynomiol") && contains_text("engram or ple or token_id or polynomial"));
  CHECK(hash_families().size() >= 4);
}

TEST_CASE("a token map must fit its table", "[hash]") {
  TableSpec spec = load_table_spec("engram_v41");
  spec.raw_vocabulary = 3;
  spec.vocabulary = 2;
  const std::string path = (std::filesystem::temp_directory_path() / "slacktier_token_map_test.bin").string();
  const auto write = [&path](std::vector<std::int32_t> ids) {
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(ids.data()), static_cast<std::streamsize>(ids.size() * 4));
  };
  write({1, 0, 1});
  const TokenMap map = TokenMap::load(path, spec);
  CHECK((map(0) == 1 && map(1) == 0 && map(2) == 1 && map.size() == 3));
  CHECK_FALSE(map.identity());
  write({1, 0});
  CHECK_THROWS_WITH(TokenMap::load(path, spec), contains_text("8 bytes") && contains_text("needs 12"));
  write({1, 0, 2});
  CHECK_THROWS_WITH(TokenMap::load(path, spec), contains_text("entry 2 is 2"));
  write({1, -1, 0});
  CHECK_THROWS_WITH(TokenMap::load(path, spec), contains_text("entry 1 is -1"));
  std::filesystem::remove(path);
  CHECK_THROWS_AS(TokenMap::load(path, spec), UsageError);
  CHECK(TokenMap()(42) == 42);
}
