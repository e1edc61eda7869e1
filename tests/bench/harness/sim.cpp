// What a step costs on the virtual clock, and Table 2 of a load as a whole: four ranks, all seven placements.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "harness/sim.hpp"

namespace {

using namespace slacktier;

SimOptions options() {
  SimOptions made;
  made.model = paper_v41_model();
  made.services = paper_services();
  made.costs = paper_costs();
  made.quiet = true;
  return made;
}

void step(benchmark::State& state) {
  const TableSpec spec = load_table_spec("engram_v41");
  const SimOptions made = options();
  const Campaign campaign = load_campaign("placement");
  VirtualClock clock(spec, made.model, campaign.placements.back(), 4, made.services, made.costs);
  std::mt19937_64 random(1);
  std::vector<RankStep> in(8);
  for (RankStep& rank : in) rank = {768, 300, static_cast<std::uint32_t>(random() % 700), 0, nullptr};
  for (auto _ : state) {
    double us = clock.step(in).step_us;
    benchmark::DoNotOptimize(us);
  }
}
BENCHMARK(step);

// Argument: measured steps of each placement, after as many through the directories. Generated agents.
void table2(benchmark::State& state) {
  Campaign campaign = load_campaign("placement");
  campaign.workloads = {{"agent", {}}};
  campaign.warm_steps = static_cast<std::uint64_t>(state.range(0));
  campaign.blocks = 2;
  campaign.lead_steps = 0;
  campaign.block_steps = static_cast<std::uint32_t>(state.range(0) / 2);
  for (auto _ : state) benchmark::DoNotOptimize(simulate_campaign(campaign, options()).results.size());
}
BENCHMARK(table2)->Arg(20)->Arg(1000)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
