// The questions on sessions whose answers can be counted by hand.
#include "harness/access.hpp"

#include <cstdint>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/safetensors.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;

namespace {

struct Fixture {
  test::Scratch scratch;
  AccessOptions options;
  explicit Fixture(const std::string& sessions) {
    options.table = scratch.write("table.json", R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32",
        "vocab_size": 100, "engram_layer_ids": [1], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32,
        "engram_vocab_size": 50000, "compressed_vocab_size": 100, "engram_pad_token_id": 2, "seed": 0})");
    options.traces = {scratch.write("s.jsonl", sessions)};
    options.sessions = 1;
    options.cache_rows = 4000;
  }
};

std::string turns(const std::string& id, const std::string& group, const std::string& prompt, const std::string& answer) {
  return R"({"id": ")" + id + R"(", "group": ")" + group + R"(", "turns": [{"role": "user", "ids": [)" + prompt +
         R"(]}, {"role": "assistant", "ids": [)" + answer + "]}]}\n";
}

double value(const Cell& cell) { return std::get<double>(cell.value); }

}  // namespace

TEST_CASE("a second session that repeats the first asks for nothing new", "[access]") {
  Fixture same(turns("a", "g", "5,6,7", "8,9,10,11") + turns("b", "h", "5,6,7", "8,9,10,11"));
  const auto tables = answer_access(same.options, {"coverage", "never-seen", "growth", "warming", "packing"});
  REQUIRE(tables.size() == 5);
  CHECK(value(tables[0].rows[0][4]) == 100);  // 2-grams, all seen
  CHECK(value(tables[0].rows[1][4]) == 100);
  CHECK(value(tables[1].rows.back()[1]) == 0);
  CHECK(value(tables[2].rows.back()[3]) == 100);
  CHECK(value(tables[3].rows[0][1]) == 0);    // cold
  CHECK(value(tables[3].rows[1][1]) == 100);  // warmed on the other group
}

TEST_CASE("a second session of other words asks for nothing old", "[access]") {
  Fixture other(turns("a", "g", "5,6,7", "8,9,10,11") + turns("b", "g", "25,26,27", "28,29,30,31"));
  const auto tables = answer_access(other.options, {"coverage", "never-seen", "warming"});
  CHECK(value(tables[0].rows[0][4]) == 0);
  CHECK(value(tables[1].rows.back()[1]) == 100);
  CHECK(tables[2].rows.empty());  // one group
  CHECK(tables[2].footnotes.at(0) == "all sessions are of one group");
}

TEST_CASE("an answer that repeats its prompt is guessed, and its rows are handed over", "[access]") {
  Fixture repeat(turns("a", "g", "5,6,7,8,9,10,11,12", "5,6,7,8,9,10,11,12") + turns("b", "h", "40", "41"));
  repeat.options.cache_rows = 8;  // next to nothing: all is missed
  const auto tables = answer_access(repeat.options, {"prefetch", "handoff"});
  // Two tokens match from the third of eight on, and the other session has one more: six of nine are guessed, all right.
  CHECK(value(tables[0].rows[0][2]) == 100);
  CHECK(value(tables[0].rows[0][1]) == Approx(100.0 * 6 / 9));
  repeat.options.cache_rows = 4000;
  const auto handed = answer_access(repeat.options, {"handoff"});
  CHECK(value(handed[0].rows[0][1]) > value(handed[0].rows[1][1]));
}

TEST_CASE("contiguous quarters make one rank read what stripes share out", "[access]") {
  // Every session asks for the same 2-grams and for 3-grams of its own.
  std::string sessions;
  for (int s = 0; s < 8; ++s) {
    std::string prompt = "5,6", answer;
    for (int i = 0; i < 60; ++i) answer += (i ? "," : "") + std::to_string(10 + (i * (s + 3) * 7 + i / 9) % 30);
    sessions += turns("s" + std::to_string(s), "g", prompt, answer);
  }
  Fixture fixture(sessions);
  fixture.options.ranks = 2;
  fixture.options.sessions = 2;
  const auto tables = answer_access(fixture.options, {"shards"});
  REQUIRE(tables[0].rows.size() == 2);
  // Without a cache all ranks read alike; with one, the rank of the 3-grams misses more.
  CHECK(value(tables[0].rows[0][1]) == Approx(value(tables[0].rows[0][3])).epsilon(0.1));
  CHECK(value(tables[0].rows[1][1]) > value(tables[0].rows[1][3]));
  CHECK(value(tables[0].rows[1][5]) > 0);
}

TEST_CASE("heads that say the same are found out, and those that do not", "[access]") {
  Fixture fixture(turns("a", "g", "5,6,7", "8,9,10,11,12,13,14") + turns("b", "h", "15,16", "17,18,19,20,21,22"));
  fixture.options.table = fixture.scratch.write("rows.json", R"({"name": "rows", "hash": "engram", "record": "bf16",
      "vocab_size": 100, "engram_layer_ids": [1], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32,
      "engram_vocab_size": 200, "compressed_vocab_size": 100, "engram_pad_token_id": 2, "seed": 0, "rows": {"weight": "w"}})");
  const std::uint64_t rows = load_table_spec(fixture.options.table).layers[0].rows;
  const auto table_of = [&](auto&& value) {
    std::string bytes;
    for (std::uint64_t i = 0; i < rows * 32; ++i) {
      const std::uint16_t bf16 = value(i);
      bytes.append(reinterpret_cast<const char*>(&bf16), 2);
    }
    fixture.options.rows =
        fixture.scratch.write("w.safetensors", test::safetensors_bytes({{"w", "BF16", {rows, 32}, bytes}}));
    return answer_access(fixture.options, {"redundancy"})[0];
  };
  const Table same = table_of([](std::uint64_t i) { return static_cast<std::uint16_t>(0x3F80 + i % 32); });
  CHECK(value(same.rows[0][3]) == Approx(1));  // cosine
  CHECK(value(same.rows[0][6]) == Approx(1));  // independent heads
  CHECK(value(same.rows[0][2]) == 0);
  const Table none = table_of([](std::uint64_t) { return std::uint16_t{0}; });
  CHECK(value(none.rows[1][2]) == 100);
  std::mt19937_64 random(3);
  const Table random_rows =
      table_of([&](std::uint64_t) { return static_cast<std::uint16_t>(0x3F00 + random() % 256 + (random() % 2 << 15)); });
  CHECK(value(random_rows.rows[0][3]) < 0.4);
  CHECK(value(random_rows.rows[1][6]) > 1.8);
  CHECK(value(random_rows.rows[0][4]) == Approx(value(random_rows.rows[0][5])).margin(0.25));
  fixture.options.rows.clear();
  CHECK_THROWS_WITH(answer_access(fixture.options, {"redundancy"}),
                    contains_text("give the table's safetensors with --rows"));
}

TEST_CASE("questions and sessions that cannot be used are refused by name", "[access]") {
  Fixture fixture(turns("a", "g", "5", "6"));
  CHECK_THROWS_WITH(answer_access(fixture.options, {}), contains_text("one session cannot be split"));
  CHECK_THROWS_WITH(answer_access(fixture.options, {"why"}), contains_text("unknown question 'why': use one of coverage"));
  fixture.options.table = "engram_v41";
  CHECK_THROWS_WITH(answer_access(fixture.options, {}), contains_text("give its token map"));
}
