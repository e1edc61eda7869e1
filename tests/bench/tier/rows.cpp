// Bytes a second of generated rows and of sealing and checking pages, on one core, beside a plain memory copy of as many
// bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tier/pages.hpp"
#include "tier/rows.hpp"

using namespace slacktier;

namespace {

void generate(benchmark::State& state, const char* table) {
  const TableSpec spec = load_table_spec(table);
  const auto origin = generated_rows(spec, 0, make_shard(spec, 0, ShardMap::contiguous, 4, 3), 1);
  std::vector<std::byte> row(spec.row_bytes);
  std::uint64_t local = 0;
  for (auto _ : state) {
    origin->row(local++, row.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * spec.row_bytes);
}
BENCHMARK_CAPTURE(generate, engram_v41, "engram_v41");
BENCHMARK_CAPTURE(generate, qwen38_ple, "qwen38_ple");

void seal(benchmark::State& state) {
  std::vector<std::byte> page(4096, std::byte{7});
  std::uint64_t number = 0;
  for (auto _ : state) {
    seal_page(page, number++, 1, 2);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 4096);
}
BENCHMARK(seal);

void check(benchmark::State& state) {
  std::vector<std::byte> page(4096, std::byte{7});
  seal_page(page, 9, 1, 2);
  for (auto _ : state) {
    benchmark::ClobberMemory();
    if (check_page(page, 9, 1, 2) != PageFault::none) state.SkipWithError("a sealed page fails its check");
  }
  state.SetBytesProcessed(state.iterations() * 4096);
}
BENCHMARK(check);

void copy(benchmark::State& state) {
  std::vector<std::byte> from(4096, std::byte{7}), to(4096);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), to.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 4096);
}
BENCHMARK(copy);

}  // namespace
