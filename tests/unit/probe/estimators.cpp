// Estimators of windows against simulated steps: noise, drift, outliers.
#include "probe/estimators.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reports/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

std::vector<DelayedStep> simulated(double w, double noise, double outliers, int repeats, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<DelayedStep> steps;
  for (int r = 0; r < repeats; ++r)
    for (const double offset : {-0.6, -0.2, 0.15, 0.4, 0.6, 0.9}) {
      double delta = std::max(0.0, offset) + normal(random);
      if (uniform(random) < outliers) delta += 5 * uniform(random);
      steps.push_back({w + offset, delta});
    }
  return steps;
}

}  // namespace

TEST_CASE("the hinge finds the window through noise and outliers", "[estimators]") {
  CHECK(std::abs(hinge_knee(simulated(9.35, 0, 0, 2, 1)) - 9.35) < 1e-4);
  int covered = 0;
  constexpr int runs = 40;
  for (std::uint64_t seed = 1; seed <= runs; ++seed) {
    const HingeFit fit = fit_hinge(simulated(9.35, 0.05, 0.05, 8, seed), seed);
    CHECK(std::abs(fit.w_ms - 9.35) < 0.06);
    REQUIRE(fit.interval);
    covered += fit.interval->covers(9.35);
    REQUIRE(fit.slope);
    CHECK(std::abs(fit.slope->estimate - 1) < 0.25);
  }
  CHECK(covered >= 33);  // of 40 at 95%: fewer has a chance of one in a thousand
}

TEST_CASE("a slope that is not one shows", "[estimators]") {
  auto steps = simulated(3, 0.01, 0, 8, 7);
  for (DelayedStep& step : steps) step.delta_ms *= 0.7;
  const HingeFit fit = fit_hinge(steps);
  REQUIRE(fit.slope);
  CHECK(fit.slope->hi < 0.95);
}

TEST_CASE("the published estimator takes the first delay that shows", "[estimators]") {
  const std::vector<DelayPoint> points = {{9, 0.18, 3}, {12, 2.65, 3}, {15, 5.61, 3}};
  CHECK(threshold_window(points, 0.3) == std::optional<double>(12 - 2.65));
  CHECK_FALSE(threshold_window(points, 6));
  // A late step before the window shows nothing, and one at its end no window either.
  CHECK(threshold_window(std::vector<DelayPoint>{{8, 0.9, 2}, {9, 0.01, 2}, {10, 0.7, 2}, {11, 1.7, 2}}, 0.3) ==
        std::optional<double>(10 - 0.7));
  CHECK_FALSE(threshold_window(std::vector<DelayPoint>{{8, 0.9, 2}, {9, 0.01, 2}}, 0.3));
  CHECK_FALSE(threshold_window(std::vector<DelayPoint>{}, 0.3));
  const std::vector<DelayedStep> steps = {{2, 1}, {1, 0.5}, {2, 3}, {2, 2}};
  const auto grouped = delay_points(steps);
  REQUIRE(grouped.size() == 2);
  CHECK(grouped[1].n == 3);
  CHECK(grouped[1].delta_ms == 2);
  CHECK_THROWS_AS(fit_hinge({}), InputError);
}

TEST_CASE("a drifting baseline is followed and reported", "[estimators]") {
  DriftingBaseline baseline;
  CHECK_THROWS_AS(baseline.at(0), InputError);
  for (int i = 0; i < 100; ++i) baseline.add(i, 10 + 0.01 * i + (i % 17 == 0 ? 5 : 0));
  CHECK(std::abs(baseline.at(50) - 10.5) < 0.03);
  const auto drift = baseline.drift();
  REQUIRE(drift);
  CHECK(std::abs(drift->estimate - 1) < 0.15);
  CHECK_FALSE(drift->covers(0));
  CHECK(step_noise(baseline.steps()) < 0.05);
}

TEST_CASE("a line through windows", "[estimators]") {
  const std::vector<int> k = {1, 2, 5};
  const std::vector<double> w = {0.8, 1.5, 3.6};
  const auto line = window_line(k, w);
  REQUIRE(line);
  CHECK(std::abs(line->ms_per_layer.estimate - 0.7) < 1e-9);
  CHECK(std::abs(line->intercept_ms - 0.1) < 1e-9);
  CHECK_FALSE(window_line(std::vector<int>{1, 2}, std::vector<double>{1, 2}));
}
