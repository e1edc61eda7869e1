#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "reports/error.hpp"
#include "reports/samples.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

using BlockList = std::vector<std::vector<double>>;

class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  double operator()() {
    const double u = (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53,
                 v = static_cast<double>(engine_() >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
  }

 private:
  std::mt19937_64 engine_;
};

// Steps of a machine as campaigns meet it: a block's level is shared by both sides, each run in it has a level of its own,
// and steps follow an AR(1) process with variance 1.
struct Machine {
  double correlation = 0, shared_level = 0, own_level = 0, difference = 0;
  std::size_t blocks = 10, steps = 60;
};

std::pair<BlockList, BlockList> run(const Machine& machine, Normal& normal) {
  std::pair<BlockList, BlockList> sides;
  for (std::size_t block = 0; block < machine.blocks; ++block) {
    const double level = 30 + machine.shared_level * normal();
    for (BlockList* side : {&sides.first, &sides.second}) {
      const double base = level + machine.own_level * normal() + (side == &sides.first ? machine.difference : 0);
      double state = normal();
      auto& steps = side->emplace_back();
      for (std::size_t step = 0; step < machine.steps; ++step) {
        steps.push_back(base + state);
        state = machine.correlation * state + std::sqrt(1 - machine.correlation * machine.correlation) * normal();
      }
    }
  }
  return sides;
}

struct Coverage {
  double mean = 0, p99 = 0, half_width = 0;
};

// How often the interval covers the true difference; for a pure shift that of the p99 is the same.
Coverage coverage(const Machine& machine, int trials, std::size_t resamples) {
  Normal normal(7);
  Coverage result;
  for (int trial = 0; trial < trials; ++trial) {
    const auto [ours, baseline] = run(machine, normal);
    const Comparison comparison = compare_blocks(ours, baseline, {static_cast<std::uint64_t>(trial) + 1, resamples, 0.95});
    result.mean += comparison.mean.covers(machine.difference) / static_cast<double>(trials);
    result.half_width += (comparison.mean.hi - comparison.mean.lo) / 2 / trials;
    if (comparison.p99) result.p99 += comparison.p99->covers(machine.difference) / static_cast<double>(trials);
  }
  return result;
}

// The interval that takes steps for independent: what the bootstrap over blocks is there to avoid.
double naive_coverage(const Machine& machine, int trials) {
  Normal normal(7);
  int covered = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const auto [ours, baseline] = run(machine, normal);
    std::vector<double> a, b;
    for (const auto& block : ours) a.insert(a.end(), block.begin(), block.end());
    for (const auto& block : baseline) b.insert(b.end(), block.begin(), block.end());
    const Summary x = summarise(a), y = summarise(b);
    const double half = 1.96 * std::sqrt((x.stddev * x.stddev + y.stddev * y.stddev) / static_cast<double>(a.size()));
    covered += std::abs(x.mean - y.mean - machine.difference) <= half;
  }
  return static_cast<double>(covered) / trials;
}

}  // namespace

TEST_CASE("the interval of the mean covers the true difference of autocorrelated steps", "[bootstrap]") {
  const Machine correlated{.correlation = 0.9, .shared_level = 0.5, .own_level = 0.2, .difference = 0.4};
  const Coverage measured = coverage(correlated, 400, 1000);
  CAPTURE(measured.mean, measured.half_width);
  CHECK(measured.mean >= 0.925);
  CHECK(measured.mean <= 0.975);
  // The same data under the wrong method: a test of coverage that this passed would be worth nothing.
  CHECK(naive_coverage(correlated, 400) < 0.7);
}

TEST_CASE("the interval of the mean is not too wide for independent steps", "[bootstrap]") {
  const Machine independent{.difference = 0.4};
  const Coverage measured = coverage(independent, 400, 1000);
  CAPTURE(measured.mean, measured.half_width);
  CHECK(measured.mean >= 0.925);
  CHECK(measured.mean <= 0.99);
  // t(9) * sqrt(2 / 600) is the ideal half width; drawing blocks and steps without correction would give 1.4 times that.
  CHECK(measured.half_width < 1.2 * 2.262 * std::sqrt(2.0 / 600));
}

TEST_CASE("blocks that share a level are compared within the block", "[bootstrap]") {
  const Machine drifting{.correlation = 0.5, .shared_level = 5, .own_level = 0.05, .difference = 0.4};
  const Coverage measured = coverage(drifting, 300, 600);
  CAPTURE(measured.mean, measured.half_width);
  CHECK(measured.mean >= 0.92);
  CHECK(measured.half_width < 0.4);  // a tenth of what the blocks' levels scatter
}

TEST_CASE("the interval of the p99 covers the true difference", "[bootstrap]") {
  const Machine correlated{.correlation = 0.8, .shared_level = 0.3, .own_level = 0.1, .difference = 0.4, .steps = 80};
  const Coverage measured = coverage(correlated, 300, 600);
  CAPTURE(measured.p99);
  CHECK(measured.p99 >= 0.925);
}

TEST_CASE("the A/A check covers zero as often as its interval says", "[bootstrap]") {
  Normal normal(11);
  int covered = 0;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const auto sides = run({.correlation = 0.8, .shared_level = 0.5, .steps = 80}, normal);
    covered += aa_check(sides.second, {static_cast<std::uint64_t>(trial) + 1, 600, 0.95}).covers_zero;
  }
  CAPTURE(covered);
  CHECK(covered >= 0.91 * trials);
  CHECK(covered <= 0.99 * trials);
}

TEST_CASE("an A/A check sees that halves of a block differ", "[bootstrap]") {
  // All blocks speed up by the same large step half-way: whichever half plays the baseline, the interval must be wide.
  BlockList blocks(10, std::vector<double>(40, 10.0));
  for (auto& block : blocks)
    for (std::size_t i = 20; i < 40; ++i) block[i] = 20;
  const AaCheck check = aa_check(blocks);
  CHECK(check.mean_pct.hi - check.mean_pct.lo > 20);
}

TEST_CASE("a comparison is determined by its seed", "[bootstrap]") {
  Normal normal(3);
  const auto [ours, baseline] = run({.correlation = 0.5, .difference = 0.1, .steps = 80}, normal);
  const Comparison a = compare_blocks(ours, baseline, {.seed = 5}), b = compare_blocks(ours, baseline, {.seed = 5});
  const Comparison c = compare_blocks(ours, baseline, {.seed = 6});
  CHECK(a.mean.lo == b.mean.lo);
  CHECK(a.p99_pct->hi == b.p99_pct->hi);
  CHECK(a.mean.lo != c.mean.lo);
  CHECK(a.mean.estimate == c.mean.estimate);
}

TEST_CASE("estimates are those of all steps pooled", "[bootstrap]") {
  // Blocks of different lengths: 2 and 4 steps.
  const BlockList ours{{11, 13}, {10, 10, 10, 12}}, baseline{{10, 10}, {8, 8, 9, 9}};
  const Comparison comparison = compare_blocks(ours, baseline);
  CHECK(comparison.mean.estimate == Approx(11.0 - 9.0));
  CHECK(comparison.mean_pct.estimate == Approx(100 * (11.0 / 9.0 - 1)));
  CHECK_FALSE(comparison.p99);
  CHECK_FALSE(comparison.p99_pct);
}

TEST_CASE("a p99 is compared only with the samples for it", "[bootstrap]") {
  const std::vector<double> block(331, 1.0);
  CHECK(compare_blocks(BlockList{block, block}, BlockList{block, block}, {.resamples = 10}).p99.has_value());
  const std::vector<double> shorter(330, 1.0);
  CHECK_FALSE(compare_blocks(BlockList{block, block}, BlockList{shorter, block}, {.resamples = 10}).p99.has_value());
}

TEST_CASE("a p99 difference is that of nearest-rank percentiles", "[bootstrap]") {
  BlockList ours(2), baseline(2);
  for (int i = 0; i < 500; ++i) {
    ours[0].push_back(i);
    ours[1].push_back(500 + i);
    baseline[0].push_back(2 * i);
    baseline[1].push_back(2 * i + 1);
  }
  std::vector<double> a, b;
  for (int i = 0; i < 2; ++i) {
    a.insert(a.end(), ours[static_cast<std::size_t>(i)].begin(), ours[static_cast<std::size_t>(i)].end());
    b.insert(b.end(), baseline[static_cast<std::size_t>(i)].begin(), baseline[static_cast<std::size_t>(i)].end());
  }
  const Comparison comparison = compare_blocks(ours, baseline, {.resamples = 10});
  CHECK(comparison.p99->estimate == percentile(a, 0.99) - percentile(b, 0.99));
  CHECK(percentile(a, 0.99) == 989);
}

TEST_CASE("comparisons refuse what they cannot compare", "[bootstrap]") {
  const BlockList one{{1, 2}}, two{{1, 2}, {3, 4}}, hole{{1, 2}, {}}, nan{{1, 2}, {1, std::nan("")}};
  CHECK_THROWS_AS(compare_blocks(one, one), InputError);
  CHECK_THROWS_AS(compare_blocks(two, one), InputError);
  CHECK_THROWS_AS(compare_blocks(two, hole), InputError);
  CHECK_THROWS_WITH(compare_blocks(nan, two), contains_text("block 1 holds a step that is not finite"));
  CHECK_THROWS_AS(aa_check(BlockList{{1.0}, {1.0}}), InputError);
}
