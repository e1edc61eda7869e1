// Sessions without their tokens: what stays, what goes, and what bad files are answered with.
#include "harness/anonymise.hpp"

#include <cstdint>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "harness/misses.hpp"
#include "harness/sessions.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/hash.hpp"

using namespace slacktier;

namespace {

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Fixture {
  test::Scratch scratch;
  AnonymiseOptions options;
  explicit Fixture(std::uint32_t head_rows = 5000) {
    options.table = scratch.write("table.json",
                                  R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "vocab_size": 1000,
               "engram_layer_ids": [1, 4], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32,
               "engram_vocab_size": )" +
                                      std::to_string(head_rows) +
                                      R"(, "compressed_vocab_size": 1000, "engram_pad_token_id": 2, "seed": 0})");
    std::mt19937_64 random(7);
    std::ostringstream out;
    for (int s = 0; s < 30; ++s) {
      out << R"({"id": "someone-)" << s << R"(", "group": "private-)" << s % 3 << R"(", "turns": [)";
      for (int t = 0; t < 4; ++t) {
        out << (t ? ", " : "") << R"({"role": ")" << (t % 2 ? "assistant" : "user") << R"(", "ids": [)";
        for (std::uint64_t i = 0, n = 5 + random() % 40; i < n; ++i) out << (i ? "," : "") << 940 + random() % 30;
        out << "]}";
      }
      out << "]}\n";
    }
    options.traces = {scratch.write("s.jsonl", out.str())};
    options.out = scratch.file("a.jsonl");
  }
};

}  // namespace

TEST_CASE("caches hit an anonymised trace as they hit the trace", "[anonymise]") {
  // Large columns, and columns of which nearly every row is asked for.
  for (const std::uint32_t head_rows : {5000u, 300u}) {
    Fixture fixture(head_rows);
    const Anonymised done = anonymise_sessions(fixture.options);
    CHECK(done.sessions == 30);
    MissesOptions options;
    options.table = fixture.options.table;
    options.traces = fixture.options.traces;
    options.ranks = 1;
    options.sessions = 8;
    options.warm_steps = 10;
    options.policies = {"lru", "s3fifo", "belady"};
    options.capacities = {0, 20, 200, 1000};
    const MissesRun plain = measure_misses(options);
    options.table = done.table_file;
    options.traces = {fixture.options.out};
    const MissesRun anonymous = measure_misses(options);
    REQUIRE(plain.tokens == anonymous.tokens);
    for (std::size_t p = 0; p < 3; ++p)
      for (std::size_t layer = 0; layer < 2; ++layer)
        for (std::size_t c = 0; c < options.capacities.size(); ++c) {
          const MissPoint& a = plain.results[p].layers[layer].ranks[0].curve[c];
          const MissPoint& b = anonymous.results[p].layers[layer].ranks[0].curve[c];
          CHECK(a.hit == b.hit);
          CHECK(a.hit_by_order == b.hit_by_order);
          CHECK(a.misses_mean == b.misses_mean);
        }
  }
}

TEST_CASE("an anonymised trace has no names and no rows of the public hash, and no two are alike", "[anonymise]") {
  Fixture fixture;
  const Anonymised done = anonymise_sessions(fixture.options);
  const std::string first = content(fixture.options.out), rows = content(done.rows_file), table = content(done.table_file);
  for (const char* name : {"someone", "private"}) {
    CHECK(first.find(name) == std::string::npos);
    CHECK(table.find(name) == std::string::npos);
  }
  CHECK(rows.size() == done.contexts * 2 * 4 * sizeof(std::uint32_t));

  // Rows that somebody who knows the hash would look for: of each context, hardly one is where it was.
  const TableSpec spec = load_table_spec(fixture.options.table), recorded = load_table_spec(done.table_file);
  CHECK(recorded.order == spec.order);
  CHECK(recorded.layers[1].head_offset == spec.layers[1].head_offset);
  const auto hash = make_hash(spec), listed = make_hash(recorded);
  const auto plain = open_sessions(fixture.options.traces), anonymous = open_sessions({fixture.options.out});
  Session a, b;
  std::size_t lookups = 0, same = 0;
  while (plain->next(a)) {
    REQUIRE(anonymous->next(b));
    REQUIRE(a.turns.size() == b.turns.size());
    std::vector<std::uint32_t> ids, numbers, context, rows_a, rows_b;
    for (std::size_t t = 0; t < a.turns.size(); ++t) {
      CHECK(a.turns[t].role == b.turns[t].role);
      ids.insert(ids.end(), a.turns[t].ids.begin(), a.turns[t].ids.end());
      numbers.insert(numbers.end(), b.turns[t].ids.begin(), b.turns[t].ids.end());
    }
    REQUIRE(ids.size() == numbers.size());
    context.resize(ids.size() * 3);
    gather_context(spec, ids, 0, ids.size(), context.data());
    rows_a.resize(ids.size() * 4);
    rows_b.resize(ids.size() * 4);
    hash->rows(0, context.data(), ids.size(), rows_a.data());
    listed->rows(0, numbers.data(), ids.size(), rows_b.data());
    for (std::size_t i = 0; i < rows_a.size(); ++i) same += rows_a[i] == rows_b[i];
    lookups += rows_a.size();
  }
  CHECK(same * 100 < lookups);

  anonymise_sessions(fixture.options);
  CHECK(content(fixture.options.out) != first);
  CHECK(content(done.rows_file) != rows);
}

TEST_CASE("recorded rows that are not the table's are refused", "[anonymise]") {
  Fixture fixture;
  const Anonymised done = anonymise_sessions(fixture.options);
  const std::string table = content(done.table_file), rows = content(done.rows_file);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = table;
    text.replace(text.find(from), from.size(), to);
    return fixture.scratch.write("changed.table.json", text);
  };
  // A digest of its own, so that rows which were read before do not serve.
  const std::size_t digest = table.find("rows_xxh3\": \"") + 13;
  const std::string other = changed(table.substr(digest, 16), "0123456789abcdef");
  CHECK_THROWS_WITH(load_table_spec(other), contains_text("is another file, or damaged"));
  fixture.scratch.write("a.jsonl.rows", rows.substr(4));
  CHECK_THROWS_WITH(load_table_spec(other), contains_text("bytes, not 4 for each of"));
  CHECK_THROWS_WITH(load_table_spec(changed("a.jsonl.rows", "none.rows")), contains_text("none.rows: cannot open"));
  CHECK_THROWS_WITH(load_table_spec(changed("\"orders\"", "\"order\"")), contains_text("\"orders\""));
  CHECK_THROWS_WITH(load_table_spec(changed(table.substr(digest, 16), "x")), contains_text("16 hexadecimal digits"));
}

TEST_CASE("sessions that cannot be anonymised leave no file", "[anonymise]") {
  Fixture fixture;
  fixture.options.traces = {
      fixture.scratch.write("bad.jsonl", R"({"id": "a", "turns": [{"role": "assistant", "ids": [1000]}]})")};
  CHECK_THROWS_WITH(anonymise_sessions(fixture.options), contains_text("bad.jsonl:1: turns[0].ids[0] is 1000"));
  CHECK_FALSE(std::ifstream(fixture.options.out).good());
  fixture.options.table = "engram_v41";
  CHECK_THROWS_WITH(anonymise_sessions(fixture.options), contains_text("give its token map"));
}
