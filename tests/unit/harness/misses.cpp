// Miss curves of small, made sessions against the tier's own step core and against counting by hand.
#include "harness/misses.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <sstream>

#include "harness/interleave.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/hash.hpp"
#include "tier/step.hpp"

using namespace slacktier;

namespace {

// A small Engram-like table without token compression, and sessions over it.
struct Fixture {
  test::Scratch scratch;
  MissesOptions options;
  explicit Fixture(std::uint32_t words = 60) {
    options.table =
        scratch.write("table.json", R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "vocab_size": 100,
               "engram_layer_ids": [1, 4], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 32,
               "engram_vocab_size": 5000, "compressed_vocab_size": 100, "engram_pad_token_id": 2, "seed": 0})");
    std::mt19937_64 random(7);
    std::ostringstream out;
    for (int s = 0; s < 40; ++s) {
      out << R"({"id": "s)" << s << R"(", "turns": [)";
      for (int t = 0; t < 4; ++t) {
        out << (t ? ", " : "") << R"({"role": ")" << (t % 2 ? "assistant" : "user") << R"(", "ids": [)";
        for (std::uint64_t i = 0, n = 5 + random() % 40; i < n; ++i) out << (i ? "," : "") << random() % words;
        out << "]}";
      }
      out << "]}\n";
    }
    options.traces = {scratch.write("s.jsonl", out.str())};
    options.ranks = 2;
    options.sessions = 8;
    options.warm_steps = 10;
    options.capacities = {0, 20, 200, 1000, 4000, 20000};
  }
};

}  // namespace

TEST_CASE("misses and the tier's step core agree on every count", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  options.policies = {"clock", "s3fifo", "lru"};
  options.steps = 120;
  const MissesRun run = measure_misses(options);
  const TableSpec spec = load_table_spec(options.table);
  const auto hash = make_hash(spec);
  for (const auto& result : run.results) {
    if (result.policy == "lru") continue;
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::uint32_t rank = 0; rank < 2; ++rank)
        for (std::size_t c = 1; c < options.capacities.size(); ++c) {
          CAPTURE(result.policy, layer, rank, options.capacities[c]);
          LayerCoreOptions core_options;
          core_options.geometry = make_page_geometry(4096, spec.row_bytes);
          core_options.shard = make_shard(spec, layer, ShardMap::contiguous, 2, rank);
          core_options.fold.stored_pages = core_options.geometry.pages(core_options.shard.rows);
          core_options.cache_rows = options.capacities[c];
          core_options.max_lookups = 8 * spec.rows_per_token();
          core_options.buffers = core_options.max_lookups;
          core_options.policy = result.policy;
          LayerCore core(core_options);
          const auto source = open_sessions(options.traces);
          InterleaveOptions interleaving;
          interleaving.sessions = 8;
          const TokenMap map;
          Interleaver interleaver(*source, spec, map, interleaving);
          StepTokens step;
          std::vector<std::uint32_t> rows, filled;
          std::vector<PageFault> faults;
          std::uint64_t pages = 0, misses = 0, any = 0;
          for (std::uint64_t s = 0; s < options.steps; ++s) {
            interleaver.next(step);
            for (const Prefill& prefill : step.prefills) {
              rows.resize(prefill.tokens * spec.rows_per_token());
              hash->rows(layer, step.view().context_of(prefill, spec.max_ngram).data(), prefill.tokens, rows.data());
              core.advance(rows, filled);
            }
            rows.resize(8 * spec.rows_per_token());
            hash->rows(layer, step.context.data(), 8, rows.data());
            core.on_indices(s + 1, rows, step.active);
            faults.assign(core.reads().size(), PageFault::none);
            core.on_pages(s + 1, faults);
            core.settle();
            if (s < options.warm_steps) continue;
            pages += core.counts().pages;
            misses += core.counts().misses;
            any += core.counts().misses > 0;
          }
          const MissPoint& point = result.layers[layer].ranks[rank].curve[c];
          CHECK(point.pages_mean.value() * 110 == Approx(static_cast<double>(pages)));
          CHECK(point.misses_mean.value() * 110 == Approx(static_cast<double>(misses)));
          CHECK(point.p_any_miss.value() * 110 == Approx(static_cast<double>(any)));
        }
  }
}

TEST_CASE("the curve falls with capacity, starts at no cache and lies below the optimum", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  options.policies = {"lru", "belady", "arc", "sieve"};
  for (const char* phase : {"decode", "prefill", "all"}) {
    CAPTURE(phase);
    options.phase = phase;
    options.threads = 3;
    const MissesRun run = measure_misses(options);
    REQUIRE(run.results.size() == 4);
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::size_t rank = 0; rank < 2; ++rank) {
        const auto& best = run.results[1].layers[layer].ranks[rank].curve;
        for (const auto& result : run.results) {
          const auto& curve = result.layers[layer].ranks[rank].curve;
          CHECK(*curve[0].hit == 0);
          CHECK(*curve[0].p_any_miss > 0.9);
          CHECK(*curve[0].pages_mean <= *curve[0].misses_mean);
          CHECK(curve[0].decode_hit.has_value() == (options.phase != "prefill"));
          for (std::size_t c = 0; c < curve.size(); ++c) {
            CHECK(*curve[c].misses_mean >= *curve[c].pages_mean);
            if (options.phase == "all") CHECK(*curve[c].hit <= *best[c].hit + 1e-9);
            if (c > 0 && result.policy == "lru") {
              CHECK(*curve[c].hit >= *curve[c - 1].hit);
              CHECK(*curve[c].pages_mean <= *curve[c - 1].pages_mean);
            }
          }
        }
        // Everything fits: all that is left are rows never seen before, whatever the policy.
        CHECK(*run.results[0].layers[layer].ranks[rank].curve.back().hit == Approx(*best.back().hit));
      }
  }
  options.phase = "decode";
  options.threads = 1;
  const MissesRun one = measure_misses(options);
  options.threads = 4;
  const MissesRun four = measure_misses(options);
  Envelope a, b;
  set_misses_results(a, one.results);
  set_misses_results(b, four.results);
  CHECK(a.results == b.results);
}

TEST_CASE("pauses, several tokens a step, striped shards and caches of sessions", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  options.capacities = {0, 400, 1600};
  const auto hit = [&](std::size_t c) { return *measure_misses(options).results[0].layers[0].ranks[0].curve[c].hit; };
  const double shared = hit(1);
  options.per_session = true;
  const double apart = hit(1);
  CHECK(apart < shared);  // these sessions all use the same few words
  options.policies = {"clock"};
  CHECK_THROWS_WITH(measure_misses(options), contains_text("with policy lru only, not clock"));
  options.policies = {"lru"};
  options.per_session = false;
  options.idle_lo = 2;
  options.idle_hi = 6;
  const MissesRun pausing = measure_misses(options);
  CHECK(pausing.results[0].idle_hi == 6);
  CHECK(*pausing.results[0].layers[0].ranks[0].curve[0].pages_mean > 0);
  options.idle_lo = options.idle_hi = 0;
  options.q = 3;
  options.shard_map = ShardMap::striped;
  const MissesRun striped = measure_misses(options);
  CHECK(striped.results[0].layers[0].ranks.size() == 2);
}

TEST_CASE("sampled rows give the curve within their error", "[misses]") {
  Fixture fixture(100);
  MissesOptions& options = fixture.options;
  options.capacities = {0, 300, 1500, 3000};
  const MissesRun exact = measure_misses(options);
  // Of 1,500 rows this leaves too few: they are followed with a larger share, and 300 with all.
  options.sample = 0.4;
  options.least_sampled_rows = 1000;
  const MissesRun sampled = measure_misses(options);
  REQUIRE(sampled.results[0].sampled);
  CHECK(*sampled.results[0].sampled->error > 0);
  for (std::size_t c = 0; c < 4; ++c) {
    CAPTURE(c);
    const MissPoint &a = exact.results[0].layers[0].ranks[1].curve[c], &b = sampled.results[0].layers[0].ranks[1].curve[c];
    CHECK(std::abs(*a.hit - *b.hit) <= 0.02 + 4 * *sampled.results[0].sampled->error);
    CHECK((a.rows > 0 || *b.hit == 0));
    if (c == 1) CHECK(*a.hit == *b.hit);
    CHECK_FALSE(b.pages_p99);
    CHECK_THAT(b.reason, contains_text("sampled rows do not tell"));
  }
}

TEST_CASE("one capacity alone is the curve's point", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  const MissesRun curve = measure_misses(options);
  for (std::size_t c = 1; c < fixture.options.capacities.size(); ++c) {
    MissesOptions one = options;
    one.capacities = {0, options.capacities[c]};
    const MissesRun alone = measure_misses(one);
    for (std::size_t layer = 0; layer < 2; ++layer)
      for (std::size_t rank = 0; rank < 2; ++rank)
        for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
          const MissPoint& a = curve.results[0].layers[layer].ranks[rank].curve[at == 0 ? 0 : c];
          const MissPoint& b = alone.results[0].layers[layer].ranks[rank].curve[at];
          CHECK(a.rows == b.rows);
          CHECK(a.hit == b.hit);
          CHECK(a.hit_by_order == b.hit_by_order);
          CHECK(a.pages_mean == b.pages_mean);
          CHECK(a.pages_p99 == b.pages_p99);
          CHECK(a.p_any_miss == b.p_any_miss);
        }
  }
}

TEST_CASE("sessions and options that say nothing are refused by name", "[misses]") {
  Fixture fixture;
  MissesOptions options = fixture.options;
  options.sessions = 41;
  CHECK_THROWS_WITH(measure_misses(options), contains_text("are needed"));
  options = fixture.options;
  options.steps = 100'000;
  CHECK_THROWS_WITH(measure_misses(options), contains_text("of 100000 with 8 at a time"));
  options = fixture.options;
  options.steps = 10;
  CHECK_THROWS_WITH(measure_misses(options), contains_text("10 of warm-up leave none to count"));
  options = fixture.options;
  options.policies = {"fifo"};
  CHECK_THROWS_WITH(measure_misses(options), contains_text("unknown cache policy 'fifo': use one of clock"));
  options = fixture.options;
  options.phase = "both";
  CHECK_THROWS_WITH(measure_misses(options), contains_text("--phase both: use decode, prefill or all"));
  options = fixture.options;
  options.sample = 0;
  CHECK_THROWS_WITH(measure_misses(options), contains_text("--sample 0"));
  options = fixture.options;
  options.policies = {"clock"};
  options.memory_bytes = 1000;
  CHECK_THROWS_WITH(measure_misses(options), contains_text("policy lru needs none"));
  options = fixture.options;
  options.traces = {"generated:agent"};
  CHECK_THROWS_WITH(measure_misses(options), contains_text("say how many --steps"));
  options = fixture.options;
  options.traces.clear();
  CHECK_THROWS_WITH(measure_misses(options), contains_text("no sessions: give --trace"));
}

TEST_CASE("a cache above the table and a prompt of one token are flagged", "[misses]") {
  Fixture fixture(1);
  MissesOptions& options = fixture.options;
  options.capacities = {1'000'000'000};
  const MissesRun run = measure_misses(options);
  REQUIRE(run.warnings.size() == 2);
  CHECK(run.warnings[0].code == "degenerate_sessions");
  CHECK(run.warnings[1].code == "capacity_above_table");
}

TEST_CASE("one session alone has a curve", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  options.sessions = 1;
  const MissesRun run = measure_misses(options);
  CHECK(run.sessions == 40);
  CHECK(*run.results[0].layers[1].ranks[1].curve.back().hit > 0);
}

TEST_CASE("static caches hold what the training sessions ask for", "[misses]") {
  Fixture fixture;
  MissesOptions& options = fixture.options;
  options.policies = {"static", "static-lru"};
  options.capacities = {0, 300, 3000};
  const MissesRun warm = measure_misses(options);
  options.train = options.traces;
  const MissesRun trained = measure_misses(options);
  const auto hit = [](const MissesRun& run, std::size_t c) { return *run.results[0].layers[0].ranks[0].curve[c].hit; };
  CHECK(hit(trained, 1) >= hit(warm, 1));
  CHECK(hit(trained, 2) > hit(trained, 1));
}
