// The planner as a user has it (a sweep of the device, a line fitted to it, pages counted in earlier steps, windows) against
// the virtual clock's later steps: how often what came lies in the interval that was predicted.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>

#include "harness/planner.hpp"
#include "harness/sim.hpp"
#include "reports/averages.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

constexpr std::uint32_t ranks = 4;
constexpr double model_error_ms = 0.2;  // what plan assumes without a fit

double between(std::mt19937_64& random, double lo, double hi) {
  return lo + (hi - lo) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

struct Drawn {
  StepModel model;
  ServiceModels services;
  CostModel costs;
  Placement placement;
  std::uint64_t rows[2] = {};
};

Drawn draw(std::mt19937_64& random) {
  Drawn drawn;
  const double w1 = between(random, 100, 1500), w14 = w1 + between(random, 1000, 8000),
               step = w14 + between(random, 1000, 20000);
  drawn.model.layer_time.assign(40, 0);
  drawn.model.layer_time[0] = static_cast<Nanos>(w1 * 1e3);
  drawn.model.layer_time[13] = static_cast<Nanos>((w14 - w1) * 1e3);
  drawn.model.layer_time[39] = static_cast<Nanos>((step - w14) * 1e3);
  ServiceModel disk;
  disk.latency_us = between(random, 30, 400);
  disk.page_us = between(random, 0.3, 4);
  disk.later_share = between(random, 0, 0.3);
  disk.jitter = between(random, 0, 0.08);
  drawn.services.add("uring", 1, 1, disk);
  drawn.costs.indices_us = between(random, 5, 60);
  drawn.costs.lookup_us = between(random, 0.005, 0.04);
  drawn.costs.miss_us = between(random, 0.01, 0.04);
  drawn.costs.release_us = between(random, 2, 12);
  for (std::size_t l = 0; l < 2; ++l) {
    LayerPlacement& layer = drawn.placement.layers[l == 0 ? 1 : 14];
    layer.source = "uring";
    drawn.rows[l] = layer.cache_rows_per_rank = std::vector<std::uint64_t>{0, 1000, 5000, 20000}[random() % 4];
  }
  drawn.placement.name = "drawn";
  return drawn;
}

// What a sweep of this device measures: T of both layers over pages that are the same on all ranks.
struct Sweep {
  std::vector<double> p1, p14, t1, t14;
};

Sweep sweep(VirtualClock& clock, std::mt19937_64& random, double most) {
  Sweep out;
  std::normal_distribution<double> normal;
  for (const double a : {0.1, 0.4, 0.7, 1.0})
    for (const double b : {0.1, 0.4, 0.7, 1.0})
      for (int batch = 0; batch < 20; ++batch) {
        const auto first = static_cast<std::uint32_t>(a * most), second = static_cast<std::uint32_t>(b * most);
        std::vector<RankStep> in(2 * ranks);
        for (std::uint32_t r = 0; r < ranks; ++r) {
          in[r] = {0, 0, std::max(1u, first), 0, nullptr};
          in[ranks + r] = {0, 0, std::max(1u, second), 0, nullptr};
        }
        const StepTimes& times = clock.step(in, {1, normal(random), 0});
        double t1 = 0, t14 = 0;
        for (std::uint32_t r = 0; r < ranks; ++r) {
          t1 = std::max(t1, times.ranks[r].arrived_us - times.ranks[r].submitted_us);
          t14 = std::max(t14, times.ranks[ranks + r].arrived_us - times.ranks[r].submitted_us);
        }
        out.p1.push_back(first);
        out.p14.push_back(second);
        out.t1.push_back(t1);
        out.t14.push_back(t14);
      }
  return out;
}

// T = a + b1 P1 + b14 P14 by the normal equations, and the spread of what it leaves, as a share of T.
ReadLine fit(const Sweep& sweep, const std::vector<double>& t) {
  double m[3][4] = {};
  for (std::size_t i = 0; i < t.size(); ++i) {
    const double x[4] = {1, sweep.p1[i], sweep.p14[i], t[i]};
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 4; ++c) m[r][c] += x[r] * x[c];
  }
  for (int p = 0; p < 3; ++p)
    for (int r = 0; r < 3; ++r)
      if (r != p) {
        const double factor = m[r][p] / m[p][p];
        for (int c = 0; c < 4; ++c) m[r][c] -= factor * m[p][c];
      }
  ReadLine line;
  const double a = m[0][3] / m[0][0], b1 = m[1][3] / m[1][1], b14 = m[2][3] / m[2][2];
  line.a_ms = a / 1e3;
  line.b_ms = {{1, b1 / 1e3}, {14, b14 / 1e3}};
  std::map<std::pair<double, double>, std::vector<double>> loads;
  for (std::size_t i = 0; i < t.size(); ++i) loads[{sweep.p1[i], sweep.p14[i]}].push_back(t[i]);
  double squares = 0, spread = 0;
  for (const auto& [pages, times] : loads) {
    const double here = mean(times), off = here - (a + b1 * pages.first + b14 * pages.second);
    squares += off * off;
    double around = 0;
    for (const double one : times) around += (one - here) * (one - here);
    spread += std::sqrt(around / static_cast<double>(times.size())) / here / static_cast<double>(loads.size());
  }
  line.error_ms = 1.96 * std::sqrt(squares / static_cast<double>(loads.size() - 3)) / 1e3;
  line.spread = spread;
  return line;
}

}  // namespace

TEST_CASE("nine in ten of what came lie in the planner's interval, which is narrow", "[planner_coverage_sessions]") {
  std::string name = (std::filesystem::temp_directory_path() / "slacktier-coverage-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const std::filesystem::path folder = name;
  std::ofstream(folder / "small.json") << R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32",
    "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": 256,
    "engram_vocab_size": 60000, "engram_pad_token_id": 0, "vocab_size": 128000, "compressed_vocab_size": 128000, "seed": 0})";
  const TableSpec spec = load_table_spec((folder / "small.json").string());
  Campaign campaign;
  campaign.table = (folder / "small.json").string();
  campaign.sessions = 64;
  campaign.warm_steps = 150;
  const StepTrace trace = record_steps(campaign, {"agent", {}}, spec, TokenMap(), campaign.warm_steps + 240);
  DirectoryPasses passes(trace, spec, campaign, {});

  std::mt19937_64 random(404);
  std::vector<double> widths;
  int inside = 0, slowed = 0;
  double squares = 0;
  constexpr int n = 100;
  for (int trial = 0; trial < n; ++trial) {
    const Drawn drawn = draw(random);
    VirtualClock clock(spec, drawn.model, drawn.placement, ranks, drawn.services, drawn.costs);
    const Sweep measured = sweep(clock, random, 64 * 24 / ranks);

    PlanProblem problem;
    problem.ranks = ranks;
    problem.step_ms = static_cast<double>(drawn.model.step()) / 1e6;
    problem.model_error_ms = model_error_ms;
    problem.residents = {{"dram", 0, 0}};
    ReadOffer offer;
    offer.source = "uring";
    offer.ranks_on_disk = ranks;
    offer.lines = {{1, fit(measured, measured.t1)}, {14, fit(measured, measured.t14)}};
    problem.reads = {offer};
    std::vector<const PassResult*> known;
    const std::size_t half = (trace.steps() - campaign.warm_steps) / 2;
    double resolve_ms = 0;
    for (std::size_t l = 0; l < 2; ++l) {
      PlanLayer layer;
      layer.k = spec.layers[l].layer;
      layer.window_ms = layer.lo_ms = layer.hi_ms = static_cast<double>(drawn.model.window(layer.k)) / 1e6;
      layer.misses.resize(1);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        PassKey key;
        key.layer_index = l;
        key.rank = rank;
        key.cache_rows = drawn.rows[l];
        key.warm_steps = campaign.warm_steps;
        known.push_back(&passes.at(key));
        double sum = 0, square = 0;
        for (std::size_t s = 0; s < half; ++s) {
          const double pages = known.back()->steps[s].pages;
          sum += pages / static_cast<double>(half);
          square += pages * pages / static_cast<double>(half);
        }
        const double spread = std::sqrt(std::max(0.0, square - sum * sum));
        layer.misses[0].push_back(
            {{static_cast<double>(drawn.rows[l]), sum, spread, 1.96 * spread / std::sqrt(static_cast<double>(half) / 10)}});
        if (l == 0)
          resolve_ms = std::max(resolve_ms, (drawn.costs.indices_us + drawn.costs.lookup_us * known.back()->steps[0].owned +
                                             drawn.costs.miss_us * sum) /
                                                1e3);
      }
      problem.layers.push_back(layer);
    }
    problem.resolve_ms = resolve_ms;
    Candidate candidate{0, {{true, 0, static_cast<double>(drawn.rows[0])}, {true, 0, static_cast<double>(drawn.rows[1])}}};
    const Prediction predicted = evaluate(problem, candidate, true).predicted;

    double simulated = 0;
    std::vector<RankStep> in(2 * ranks);
    std::normal_distribution<double> normal;
    for (std::size_t s = half; s < known[0]->steps.size(); ++s) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        const StepOutcome& outcome = known[i]->steps[s];
        in[i] = {outcome.owned, outcome.misses, outcome.pages, 0, nullptr};
      }
      simulated += clock.step(in, {1, normal(random), normal(random)}).step_us / 1e3 - problem.step_ms;
    }
    simulated /= static_cast<double>(known[0]->steps.size() - half);
    inside += simulated >= predicted.lo_ms && simulated <= predicted.hi_ms;
    slowed += simulated > 0.05;
    widths.push_back(predicted.hi_ms - predicted.lo_ms);
    squares += (predicted.mean_ms - simulated) * (predicted.mean_ms - simulated) / n;
  }
  std::printf("%d of %d inside, %d slowed; median width %.3f ms; RMSE %.3f ms\n", inside, n, slowed, median(widths),
              std::sqrt(squares));
  CHECK(slowed >= 30);
  CHECK(inside >= 90);
  CHECK(median(widths) <= 0.5);
  CHECK(std::sqrt(squares) <= 0.10);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}
