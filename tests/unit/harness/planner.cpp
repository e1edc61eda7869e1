#include "harness/planner.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

#include "reports/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  double real(double lo, double hi) { return lo + (hi - lo) * static_cast<double>(random_() % 1'000'000) / 1e6; }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  std::mt19937_64 random_;
};

MissLine curve(Random& random) {
  const double uncached = random.real(50, 800);
  MissLine line;
  double left = 1;
  for (const double rows : {0.0, 1e5, 5e5, 1e6, 2e6}) {
    line.push_back({rows, uncached * left, std::sqrt(uncached * left), 0.02 * uncached * left});
    left *= random.real(0.4, 0.9);
  }
  return line;
}

// A problem as measurements would give it: two layers, ranks, shard maps and disks at random.
PlanProblem made_up(std::uint64_t seed, std::size_t layers = 2) {
  Random random(seed);
  PlanProblem problem;
  problem.shard_maps = {"contiguous"};
  if (random.below(2) == 1) problem.shard_maps.push_back("striped");
  problem.ranks = static_cast<std::uint32_t>(1 + random.below(4));
  for (std::size_t l = 0; l < layers; ++l) {
    PlanLayer layer;
    layer.k = static_cast<int>(1 + 13 * l);
    layer.window_ms = random.real(0.1, 4) * static_cast<double>(l + 1);
    layer.lo_ms = layer.window_ms - 0.05;
    layer.hi_ms = layer.window_ms + 0.05;
    for (std::size_t map = 0; map < problem.shard_maps.size(); ++map) {
      layer.misses.emplace_back();
      for (std::uint32_t r = 0; r < problem.ranks; ++r) layer.misses.back().push_back(curve(random));
    }
    layer.table_bytes = random.real(20, 100) * gib;
    layer.page_bytes = 1.03 * layer.table_bytes;
    layer.directory_bytes = layer.table_bytes / 66;
    problem.layers.push_back(layer);
  }
  problem.residents = {{"dram", 0, 0}};
  if (random.below(2) == 1) problem.residents.push_back({"hbm", random.real(10, 60) * gib, 0});
  const std::size_t offers = 1 + random.below(3);
  for (std::size_t o = 0; o < offers; ++o) {
    ReadOffer offer;
    offer.source = o == 2 ? "rdma" : "uring";
    offer.disks = static_cast<std::uint32_t>(1 + o);
    offer.ranks_on_disk = o % 2 == 0 ? static_cast<int>(problem.ranks) : 1;
    offer.name = offer.source + " " + std::to_string(offer.disks);
    for (const PlanLayer& layer : problem.layers) {
      ReadLine line;
      line.a_ms = random.real(0.02, 0.4);
      for (const PlanLayer& other : problem.layers) line.b_ms[other.k] = random.real(1e-4, 4e-3);
      line.error_ms = 0.05;
      line.spread = 0.05;
      line.range[layer.k] = {1, 900};
      offer.lines[layer.k] = line;
    }
    problem.reads.push_back(offer);
  }
  problem.cache_rows = 1e6;
  problem.resolve_ms = 0.1;
  problem.kappa_ms = {0.02, -0.02, 0.06};
  problem.model_error_ms = 0.1;
  problem.step_ms = 29.4;
  problem.step_spread_ms = 0.4;
  problem.mean_bound_pct = random.real(0.2, 3);
  problem.p99_bound_pct = 2 * problem.mean_bound_pct;
  return problem;
}

// Every candidate, counted out once more by hand: layers, maps and splits.
std::vector<Candidate> by_hand(const PlanProblem& p) {
  std::vector<Candidate> all;
  const std::size_t places = p.residents.size(), offers = places + p.reads.size();
  for (std::size_t a = 0; a < offers; ++a)
    for (std::size_t b = 0; b < offers; ++b)
      for (std::size_t map = 0; map < p.shard_maps.size(); ++map)
        for (int eighths = -1; eighths <= 8; ++eighths) {
          Candidate c{map, {{a >= places, a >= places ? a - places : a, 0}, {b >= places, b >= places ? b - places : b, 0}}};
          if (c.layers[0].reads && c.layers[1].reads) {
            if (a != b && p.reads[a - places].source == p.reads[b - places].source) continue;
            if (eighths >= 0) {
              c.layers[0].cache_rows = std::round(p.cache_rows * eighths / 8);
              c.layers[1].cache_rows = std::round(p.cache_rows * (8 - eighths) / 8);
            }
          } else if (c.layers[0].reads || c.layers[1].reads) {
            if (eighths > 0) continue;
            c.layers[c.layers[0].reads ? 0 : 1].cache_rows = eighths < 0 ? 0 : p.cache_rows;
          } else if (eighths >= 0 || map > 0) {
            continue;
          }
          double in_hbm = 0;
          for (std::size_t l = 0; l < 2; ++l)
            if (!c.layers[l].reads && c.layers[l].offer == 1) in_hbm += p.layers[l].table_bytes;
          if (places > 1 && in_hbm > p.residents[1].capacity_bytes) continue;
          all.push_back(c);
        }
  return all;
}

}  // namespace

TEST_CASE("the planner chooses what an exhaustive search chooses", "[planner]") {
  std::size_t moves = 0, keeps = 0, unsure = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    const PlanProblem problem = made_up(seed);
    const std::vector<Candidate> all = by_hand(problem);
    const PlanOutcome outcome = plan_tables(problem);
    CHECK(outcome.considered == all.size());
    std::optional<Plan> certain, possible;
    const Plan baseline = evaluate(problem, outcome.baseline.candidate);
    CHECK(baseline.predicted.mean_ms == 0);
    for (const Candidate& candidate : all) {
      const Plan plan = evaluate(problem, candidate, true);
      // Less of host memory, by more than what counts as none.
      if (!within(problem, plan) || plan.host_bytes > baseline.host_bytes * 0.99) continue;
      if (certainly_within(problem, plan) && (!certain || ranks_before(problem, plan, *certain))) certain = plan;
      if (!possible || ranks_before(problem, plan, *possible)) possible = plan;
    }
    const Decision expected = certain ? Decision::move : possible ? Decision::unsure : Decision::keep;
    CHECK(to_string(outcome.decision) == std::string(to_string(expected)));
    if (certain) CHECK(outcome.chosen.candidate == certain->candidate);
    if (!certain && possible) CHECK(outcome.chosen.candidate == possible->candidate);
    (expected == Decision::move ? moves : expected == Decision::keep ? keeps : unsure) += 1;
  }
  CHECK(moves > 5);
  CHECK(keeps + unsure > 3);
}

TEST_CASE("a faster disk, a longer window, a larger cache never cost more", "[planner]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const PlanProblem problem = made_up(seed);
    PlanProblem faster = problem, longer = problem, larger = problem, more = problem;
    for (ReadOffer& offer : faster.reads)
      for (auto& [k, line] : offer.lines) {
        line.a_ms *= 0.8;
        for (auto& [j, b] : line.b_ms) b *= 0.9;
      }
    for (PlanLayer& layer : longer.layers) layer.window_ms += 0.3, layer.lo_ms += 0.3, layer.hi_ms += 0.3;
    more.read_factor = 2;
    for (const Candidate& candidate : candidates(problem)) {
      const double now = evaluate(problem, candidate).predicted.mean_ms;
      CHECK(evaluate(faster, candidate).predicted.mean_ms <= now + 1e-9);
      CHECK(evaluate(longer, candidate).predicted.mean_ms <= now + 1e-9);
      CHECK(evaluate(more, candidate).predicted.mean_ms >= now - 1e-9);
      Candidate cached = candidate;
      for (LayerChoice& choice : cached.layers) choice.cache_rows += choice.reads ? 3e5 : 0;
      // Spread falls less than pages do, so a step's tail may rise a little where the mean falls.
      CHECK(evaluate(problem, cached).predicted.mean_ms <= now + 0.02);
    }
    // What may be moved at a bound may be moved at a wider one, and frees no less.
    PlanProblem wider = problem;
    wider.mean_bound_pct *= 2;
    wider.p99_bound_pct *= 2;
    const PlanOutcome narrow = plan_tables(problem), wide = plan_tables(wider);
    if (narrow.decision == Decision::move) {
      CHECK(wide.decision == Decision::move);
      CHECK(wide.chosen.host_bytes <= narrow.chosen.host_bytes * 1.01);
    }
  }
}

TEST_CASE("what a rank waits for is what the disk serves by then, to others too", "[planner]") {
  PlanProblem problem = made_up(3, 1);
  problem.shard_maps = {"contiguous"};
  problem.ranks = 2;
  problem.layers[0].window_ms = problem.layers[0].lo_ms = problem.layers[0].hi_ms = 0;
  problem.layers[0].misses = {{{{0, 100, 0, 0}}, {{0, 300, 0, 0}}}};
  problem.resolve_ms = 0;
  problem.kappa_ms = {};
  problem.reads.resize(1);
  ReadLine& line = problem.reads[0].lines.at(1);
  line.a_ms = 0.1;
  line.b_ms = {{1, 2e-3}};
  line.spread = 0;
  const auto read_ms = [&](int ranks_on_disk) {
    problem.reads[0].ranks_on_disk = ranks_on_disk;
    return evaluate(problem, {0, {{true, 0, 0}}}).predicted.read_ms[0];
  };
  // Measured with two ranks of as many pages: 2 us a page of one are two pages served. Here 400 are, not 600.
  CHECK(read_ms(2) == Approx(0.1 + 2e-3 * 200));
  // Each on a disk of its own, or ranks that nobody measured beside each other: its own pages.
  CHECK(read_ms(1) == Approx(0.1 + 2e-3 * 300));
}

TEST_CASE("a device that seldom halts costs its halts, and how often is not sure", "[planner]") {
  PlanProblem problem = made_up(3, 1);
  problem.shard_maps = {"contiguous"};
  problem.ranks = 1;
  problem.layers[0].window_ms = problem.layers[0].lo_ms = problem.layers[0].hi_ms = 5;
  problem.layers[0].misses = {{{{0, 100, 0, 0}}}};
  problem.resolve_ms = problem.model_error_ms = 0;
  problem.kappa_ms = {};
  problem.reads.resize(1);
  ReadLine& line = problem.reads[0].lines.at(1);
  line = {};
  line.a_ms = 1;
  line.b_ms = {{1, 0.01}};
  const Candidate candidate{0, {{true, 0, 0}}};
  CHECK(evaluate(problem, candidate, true).predicted.hi_ms == 0);  // 2 ms of 5
  line.rare = 0.01;
  line.rare_lo = 0.004;
  line.rare_hi = 0.025;
  line.rare_ms = 43;
  // One step in a hundred is late by 2 + 43 - 5 ms.
  const Prediction predicted = evaluate(problem, candidate, true).predicted;
  CHECK(predicted.mean_ms == Approx(0.4));
  CHECK(predicted.lo_ms == Approx(0.16));
  CHECK(predicted.hi_ms == Approx(1.0));
}

TEST_CASE("intervals hold their mean and grow with what is not known", "[planner]") {
  const PlanProblem problem = made_up(5);
  PlanProblem vague = problem;
  vague.model_error_ms = 1;
  for (PlanLayer& layer : vague.layers) layer.lo_ms -= 0.5, layer.hi_ms += 0.5;
  for (const Candidate& candidate : candidates(problem)) {
    const Prediction p = evaluate(problem, candidate, true).predicted, v = evaluate(vague, candidate, true).predicted;
    CHECK(p.lo_ms <= p.mean_ms);
    CHECK(p.mean_ms <= p.hi_ms);
    if (p.any_read) CHECK(v.hi_ms - v.lo_ms > p.hi_ms - p.lo_ms);
  }
}

TEST_CASE("with prices the least cost counts, and places have room", "[planner]") {
  PlanProblem problem = made_up(2);
  problem.mean_bound_pct = 1000;
  problem.p99_bound_pct = 1000;
  problem.price_per_gib = {{"dram", 1}, {"uring", 5}, {"rdma", 5}, {"hbm", 100}};
  const PlanOutcome dear = plan_tables(problem);
  CHECK(dear.decision == Decision::keep);  // every other place costs more
  problem.price_per_gib["uring"] = 0.05;
  const PlanOutcome cheap = plan_tables(problem);
  CHECK(cheap.decision == Decision::move);
  CHECK(cheap.chosen.cost < 0.2 * dear.baseline.cost);
}

TEST_CASE("many layers: shallow ones stay, deep ones move", "[planner]") {
  PlanProblem problem = made_up(3, 12);
  problem.residents.resize(1);
  problem.mean_bound_pct = 5;
  problem.p99_bound_pct = 10;
  for (std::size_t l = 0; l < problem.layers.size(); ++l) {
    problem.layers[l].window_ms = 1.5 * static_cast<double>(l);  // the first has none: part of the input
    problem.layers[l].lo_ms = problem.layers[l].hi_ms = problem.layers[l].window_ms;
  }
  problem.model_error_ms = 0;
  const PlanOutcome outcome = plan_tables(problem);
  CHECK(outcome.decision == Decision::move);
  CHECK_FALSE(outcome.chosen.candidate.layers.front().reads);
  CHECK(outcome.chosen.candidate.layers.back().reads);
  CHECK(describe(problem, outcome.chosen.candidate).find("L1") != std::string::npos);
}

TEST_CASE("an unreachable bound keeps the tables and names the nearest plan", "[planner]") {
  PlanProblem problem = made_up(4);
  problem.residents.resize(1);
  for (PlanLayer& layer : problem.layers) layer.window_ms = layer.lo_ms = layer.hi_ms = 0;
  const PlanOutcome outcome = plan_tables(problem);
  CHECK(outcome.decision == Decision::keep);
  CHECK(outcome.chosen.predicted.any_read);
  CHECK_FALSE(outcome.unbind.empty());
  PlanProblem empty = problem;
  empty.layers.clear();
  CHECK_THROWS_AS(plan_tables(empty), InputError);
  problem.step_ms = 0;
  CHECK_THROWS_AS(plan_tables(problem), InputError);
}

TEST_CASE("engines are named with what they offer", "[planner]") {
  CHECK(offered_by_engines("engram", {"dram", "dram"}).find("vLLM") != std::string::npos);
  CHECK(offered_by_engines("engram", {"dram", "uring"}).find("No released engine") == 0);
  CHECK(offered_by_engines("ple", {"uring"}).find("No released engine") == 0);
}
