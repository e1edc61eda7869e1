// Planning: candidates evaluated a second, on a problem of the size that one meets: two tables, four ranks, two shard maps,
// and so many ways to read that there are 10,000 candidates. Aim: at most a second for them.
#include <benchmark/benchmark.h>

#include "harness/planner.hpp"

namespace {

using namespace slacktier;

PlanProblem problem(std::size_t offers) {
  PlanProblem p;
  p.shard_maps = {"contiguous", "striped"};
  p.ranks = 4;
  for (const int k : {1, 14}) {
    PlanLayer layer;
    layer.k = k;
    layer.window_ms = k == 1 ? 0.27 : 9.35;
    layer.lo_ms = layer.window_ms - 0.05;
    layer.hi_ms = layer.window_ms + 0.05;
    for (std::size_t map = 0; map < p.shard_maps.size(); ++map) {
      layer.misses.emplace_back();
      for (std::uint32_t r = 0; r < p.ranks; ++r)
        layer.misses.back().push_back(
            {{0, 700.0 - 100 * r, 20, 5}, {5e5, 300, 15, 5}, {1e6, 200, 12, 5}, {2e6, 150, 10, 5}});
    }
    layer.table_bytes = 1e11;
    layer.page_bytes = 1.03e11;
    layer.directory_bytes = 1.5e9;
    p.layers.push_back(layer);
  }
  p.residents = {{"dram", 0, 0}, {"hbm", 1.2e11, 0}};
  for (std::size_t o = 0; o < offers; ++o) {
    ReadOffer offer;
    offer.source = "source" + std::to_string(o);
    offer.name = offer.source;
    for (const int k : {1, 14})
      offer.lines[k] = {.a_ms = 0.3,
                        .b_ms = {{1, 3e-3 / (1 + double(o))}, {14, 4e-4}},
                        .error_ms = 0.05,
                        .spread = 0.05,
                        .range = {{k, {1, 900}}}};
    p.reads.push_back(offer);
  }
  p.cache_rows = 1e6;
  p.resolve_ms = 0.1;
  p.step_ms = 29.4;
  p.step_spread_ms = 0.5;
  p.model_error_ms = 0.2;
  return p;
}

void plan_two_tables(benchmark::State& state) {
  const PlanProblem p = problem(static_cast<std::size_t>(state.range(0)));
  std::size_t considered = 0;
  for (auto _ : state) considered = plan_tables(p).considered;
  state.counters["candidates"] = static_cast<double>(considered);
  state.counters["candidates_per_s"] =
      benchmark::Counter(static_cast<double>(considered), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(plan_two_tables)->Arg(3)->Arg(22)->Unit(benchmark::kMillisecond);

}  // namespace
