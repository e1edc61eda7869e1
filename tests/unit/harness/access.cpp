// The questions on sessions whose answers can be counted by hand.
#include "harness/access.hpp"

#include <cstdint>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
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

TEST_CASE("questions and sessions that cannot be used are refused by name", "[access]") {
  Fixture fixture(turns("a", "g", "5", "6"));
  CHECK_THROWS_WITH(answer_access(fixture.options, {}), contains_text("one session cannot be split"));
  CHECK_THROWS_WITH(answer_access(fixture.options, {"why"}), contains_text("unknown question 'why': use one of coverage"));
  fixture.options.table = "engram_v41";
  CHECK_THROWS_WITH(answer_access(fixture.options, {}), contains_text("give its token map"));
}
