// Decode hit rates of the real sessions, per rank, layer and n-gram order: the tier's own directory and step core against
// a slow simulator that shares no code with them and states the cache's definition (slow_simulator.hpp).
#include <cstdint>
#include <cstdlib>

#include "harness/interleave.hpp"
#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"
#include "tests/unit/harness/slow_simulator.hpp"
#include "tier/hash.hpp"
#include "tier/shard.hpp"
#include "tier/step.hpp"
#include "tier/table.hpp"

using namespace slacktier;

namespace {

constexpr std::uint32_t ranks = 4;
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t warm_up_steps = 60, counted_steps = 40;
#else
constexpr std::size_t warm_up_steps = 400, counted_steps = 200;
#endif

// The same counts as slow::hit_counts, from the tier: its hash, shards, directory and step core, without moving bytes.
slow::Table tier_counts(const StepTrace& trace, const TableSpec& spec, std::size_t rows_per_cache) {
  const auto hash = make_hash(spec);
  const std::size_t columns = spec.rows_per_token();
  slow::Table table{};
  std::vector<std::uint32_t> rows(std::max<std::size_t>(trace.sessions(), trace.max_prefill_tokens()) * columns), filled;
  std::vector<PageFault> faults;
  for (std::size_t layer = 0; layer < spec.layers.size(); ++layer) {
    std::vector<LayerCore> cores;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      LayerCoreOptions options;
      options.geometry = make_page_geometry(4096, spec.row_bytes);
      options.shard = make_shard(spec, layer, ShardMap::contiguous, ranks, rank);
      options.fold.stored_pages = options.geometry.pages(options.shard.rows);
      options.cache_rows = rows_per_cache;
      options.max_lookups = static_cast<std::uint32_t>(trace.sessions() * columns);
      options.buffers = options.max_lookups;
      cores.emplace_back(options);
    }
    for (std::uint64_t s = 0; s < trace.steps(); ++s) {
      const StepView step = trace.step(s);
      for (const Prefill& prefill : step.prefills) {
        hash->rows(layer, step.context_of(prefill, spec.max_ngram).data(), prefill.tokens, rows.data());
        for (LayerCore& core : cores) {
          filled.clear();
          core.advance(std::span(rows).first(prefill.tokens * columns), filled);
        }
      }
      hash->rows(layer, step.context.data(), trace.sessions(), rows.data());
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        LayerCore& core = cores[rank];
        core.on_indices(s + 1, std::span(rows).first(trace.sessions() * columns), step.active);
        faults.assign(core.reads().size(), PageFault::none);
        core.on_pages(s + 1, faults);
        core.settle();
        if (s < warm_up_steps) continue;
        for (std::size_t c = 0; c < columns; ++c) {
          slow::Counts& counts = table[rank][layer][static_cast<std::size_t>(spec.order[c]) - 2];
          counts.lookups += core.counts().owned_by_column[c];
          counts.hits += core.counts().hits_by_column[c];
          counts.reused += core.counts().reused_by_column[c];
        }
      }
    }
  }
  return table;
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// Compares rank by rank, layer by layer, order by order, and prints both hit rates.
void compare(const std::string& title, const slow::Table& tier, const slow::Table& slow_table) {
  std::printf("%s: decode hits %% (and reused %%), tier | slow simulator\n", title.c_str());
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::printf("  layer %2d rank %zu", layer == 0 ? 1 : 14, rank);
      for (std::size_t order = 0; order < 3; ++order) {
        const slow::Counts &a = tier[rank][layer][order], &b = slow_table[rank][layer][order];
        INFO(title << ", rank " << rank << ", layer index " << layer << ", order " << order + 2);
        CHECK(a.lookups == b.lookups);
        // A quarter of the rows ends inside a head, so next to six heads a rank may own the few last rows of another.
        if (b.lookups < 1000) continue;
        std::printf("   %zu-gram %5.2f (%.2f) | %5.2f (%.2f)", order + 2, percent(a.hits, a.lookups),
                    percent(a.reused, a.lookups), percent(b.hits, b.lookups), percent(b.reused, b.lookups));
        CHECK(std::abs(percent(a.hits, a.lookups) - percent(b.hits, b.lookups)) <= 0.5);
        CHECK(std::abs(percent(a.reused, a.lookups) - percent(b.reused, b.lookups)) <= 0.5);
      }
      std::printf("\n");
    }
  }
}

// Caches in rows per rank, split evenly over the two layers.
void check_workload(const std::string& name, std::uint32_t sessions, const std::vector<std::size_t>& caches) {
#if defined(__SANITIZE_THREAD__)
  return skip_test("one thread only, and the thread sanitizer's shadow of four full-size directories needs 8 GiB");
#endif
  const std::string file = real_session_file(name + ".tokens.jsonl.zst");
  const std::string map_file = real_session_file("token_map_v41_i32le.bin");
  if (file.empty() || map_file.empty()) {
    return skip_test(name +
                     ".tokens.jsonl.zst or token_map_v41_i32le.bin is not there; set SLACKTIER_SESSIONS to their directory");
  }
  const std::size_t steps = warm_up_steps + counted_steps;
  const TableSpec spec = load_table_spec("engram_v41");
  const TokenMap map = TokenMap::load(map_file, spec);
  SessionOptions reading;
  reading.raw_vocabulary = spec.raw_vocabulary;
  const auto source = open_sessions({file}, reading);
  InterleaveOptions options;
  options.sessions = sessions;
  options.steps = steps;
  Interleaver interleaver(*source, spec, map, options);
  const StepTrace trace = StepTrace::record(interleaver, steps);

  const std::vector<slow::Step> slow_steps =
      slow::interleave(slow::read_sessions(file, slow::read_token_map(map_file)), sessions, steps);
  for (const std::size_t rows_per_rank : caches) {
    const slow::Table expected = slow::hit_counts(slow_steps, warm_up_steps, sessions, rows_per_rank / 2);
    compare(name + ", " + std::to_string(sessions) + " sessions, " + std::to_string(rows_per_rank) + " rows per rank",
            tier_counts(trace, spec, rows_per_rank / 2), expected);
  }
}

}  // namespace

// 1,000,000 rows are the paper's default; 50,000 rows are replaced all the time.
TEST_CASE("agent sessions, 64 at a time: hit rates equal a slow simulator's", "[hit_rates_sessions]") {
  check_workload("agent", 64, {1000000});
}
TEST_CASE("agent sessions, 128 at a time: hit rates equal a slow simulator's", "[hit_rates_sessions]") {
  check_workload("agent", 128, {1000000, 50000});
}
TEST_CASE("chat sessions, 64 at a time: hit rates equal a slow simulator's", "[hit_rates_sessions]") {
  check_workload("chat", 64, {1000000});
}
TEST_CASE("chat sessions, 128 at a time: hit rates equal a slow simulator's", "[hit_rates_sessions]") {
  check_workload("chat", 128, {1000000, 50000});
}
