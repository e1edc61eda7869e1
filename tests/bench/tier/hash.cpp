// Rows a second of the n-gram hash on one core, beside the least that it could cost: per row one high and one low
// multiplication and one store. Columns: rows_per_second of the hash, limit_rows_per_second of that bare chain over the same
// tokens, timed in turn with it, and of_limit, the ratio of the two.
#include <benchmark/benchmark.h>
#include <time.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tier/hash.hpp"

using namespace slacktier;

namespace {

__extension__ using Wide = unsigned __int128;

// The bound: no exact remainder, no per-head constants, only what no method with one reciprocal multiplication can avoid.
void multiply_chain(const std::uint32_t* context, std::size_t tokens, std::size_t depth, std::size_t per_token,
                    std::uint32_t* rows) {
  constexpr std::uint64_t inverse = 1152914567137ULL, prime = 16000057;
  for (std::size_t token = 0; token < tokens; ++token, context += depth) {
    std::uint64_t mix = context[0] * 76632096046245ULL;
    for (std::size_t i = 1; i < depth; ++i) mix ^= context[i] * 4839876093313ULL;
    for (std::size_t c = 0; c < per_token; ++c) {
      const auto quotient = static_cast<std::uint64_t>((static_cast<Wide>(mix + c) * inverse) >> 64);
      *rows++ = static_cast<std::uint32_t>(mix - quotient * prime);
    }
  }
}

// This thread's own time: what neighbours on the core take does not count.
double cpu_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void hash_rows(benchmark::State& state, const char* table) {
  const TableSpec spec = load_table_spec(table);
  const auto hash = make_hash(spec);
  constexpr std::size_t tokens = 128;  // a decode step of 128 sessions
  const auto depth = static_cast<std::size_t>(spec.max_ngram);
  const std::size_t per_token = spec.rows_per_token();
  std::mt19937 random(3);
  std::vector<std::uint32_t> context(tokens * depth), rows(tokens * per_token);
  for (auto& id : context) id = static_cast<std::uint32_t>(random() % spec.vocabulary);

  // One round of each in turn, so that both meet the same clock and neighbours.
  double hash_seconds = 0, limit_seconds = 0;
  const auto timed = [](double& seconds, const auto& work) {
    const double start = cpu_seconds();
    for (int i = 0; i < 100; ++i) {
      work();
      benchmark::ClobberMemory();
    }
    const double took = cpu_seconds() - start;
    seconds += took;
    return took;
  };
  benchmark::DoNotOptimize(rows.data());
  for (auto _ : state) {
    timed(limit_seconds, [&] { multiply_chain(context.data(), tokens, depth, per_token, rows.data()); });
    state.SetIterationTime(timed(hash_seconds, [&] { hash->rows(0, context.data(), tokens, rows.data()); }));
  }
  const double count = static_cast<double>(state.iterations()) * 100 * static_cast<double>(rows.size());
  state.counters["rows_per_second"] = count / hash_seconds;
  state.counters["limit_rows_per_second"] = count / limit_seconds;
  state.counters["of_limit"] = limit_seconds / hash_seconds;
}

BENCHMARK_CAPTURE(hash_rows, engram_v41, "engram_v41")->UseManualTime();
BENCHMARK_CAPTURE(hash_rows, qwen38_ple, "qwen38_ple")->UseManualTime();

}  // namespace
