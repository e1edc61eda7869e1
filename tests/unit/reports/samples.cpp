#include "reports/samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "reports/error.hpp"
#include "reports/probability.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// The definition as written: the smallest sample such that at least p * n samples are no larger, by counting.
double counted_percentile(const std::vector<double>& samples, int per_mille) {
  double best = INFINITY;
  for (const double candidate : samples) {
    const auto not_larger = std::count_if(samples.begin(), samples.end(), [&](double x) { return x <= candidate; });
    if (1000 * not_larger >= per_mille * static_cast<std::ptrdiff_t>(samples.size())) best = std::min(best, candidate);
  }
  return best;
}

std::vector<double> one_to(int n) {
  std::vector<double> samples(static_cast<std::size_t>(n));
  std::iota(samples.begin(), samples.end(), 1.0);
  return samples;
}

}  // namespace

TEST_CASE("percentiles follow their definition", "[samples]") {
  std::mt19937 engine(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> samples(1 + engine() % 300);
    for (double& sample : samples) sample = static_cast<double>(engine() % 50);  // with ties
    for (const int per_mille : {1, 100, 250, 500, 900, 990, 999, 1000}) {
      CAPTURE(samples.size(), per_mille);
      CHECK(percentile(samples, per_mille / 1000.0) == counted_percentile(samples, per_mille));
    }
  }
  CHECK(percentile(one_to(100), 0.99) == 99);
  CHECK(percentile(one_to(101), 0.99) == 100);
  CHECK_THROWS_AS(percentile({}, 0.5), InputError);
  CHECK_THROWS_AS(percentile(one_to(3), 0.0), InputError);
  CHECK_THROWS_AS(percentile(one_to(3), 1.5), InputError);
}

TEST_CASE("a percentile claim needs as many samples as the load generator asks for", "[samples]") {
  CHECK(samples_needed(0.9) == 64);
  CHECK(samples_needed(0.99) == 662);
  CHECK(samples_needed(0.999) == 6636);
  for (const double p : {0.5, 0.95, 0.99}) {
    CHECK(binomial_cdf(1, samples_needed(p), 1 - p) <= 0.01);
    CHECK(binomial_cdf(1, samples_needed(p) - 1, 1 - p) > 0.01);
  }
}

TEST_CASE("the bound of a percentile holds at its confidence", "[samples]") {
  CHECK_FALSE(percentile_bound(one_to(661), 0.99));
  CHECK(percentile_bound(one_to(662), 0.99) == 662.0);
  CHECK(percentile_bound(one_to(1000), 0.99) == 999.0);   // t = 2
  CHECK(percentile_bound(one_to(5000), 0.99) == 4968.0);  // t = 33
  // Of many runs, at most one in a hundred may have a bound below the true quantile 0.99.
  std::mt19937_64 engine(2);
  int below = 0;
  std::vector<double> samples(1000);
  for (int run = 0; run < 1000; ++run) {
    for (double& sample : samples) sample = static_cast<double>(engine() >> 11) * 0x1p-53;
    below += *percentile_bound(samples, 0.99) < 0.99;
  }
  CAPTURE(below);
  CHECK(below <= 10);
}

TEST_CASE("a summary", "[samples]") {
  const std::vector<double> samples{4, 1, 3, 2};
  const Summary summary = summarise(samples);
  CHECK(summary.n == 4);
  CHECK(summary.mean == 2.5);
  CHECK(summary.min == 1);
  CHECK(summary.max == 4);
  CHECK(summary.stddev == Approx(std::sqrt(5.0 / 3)));
  CHECK(summary.p50 == 2);
  CHECK_FALSE(summary.p99);
  CHECK(summary.p99_needs == 662);
  CHECK_FALSE(summarise(one_to(661)).p99);
  CHECK(summarise(one_to(662)).p99 == 656.0);
}

TEST_CASE("a summary of nothing is no number", "[samples]") {
  const Summary none = summarise({});
  CHECK(none.n == 0);
  CHECK(std::isnan(none.mean));
  CHECK_FALSE(none.p99);
  CHECK(std::isnan(summarise(one_to(1)).stddev));
}

TEST_CASE("the run-order slope is that of least squares", "[samples]") {
  // scipy.stats.linregress and its stderr with t(6).
  const std::vector<double> order{0, 1, 2, 3, 4, 5, 6, 7}, means{10.0, 10.2, 9.9, 10.4, 10.1, 10.5, 10.3, 10.6};
  const Interval slope = run_order_slope(order, means);
  CHECK(slope.estimate == Approx(0.07380952380952384).epsilon(1e-12));
  CHECK(slope.lo == Approx(0.006410876330428639).epsilon(1e-9));
  CHECK(slope.hi == Approx(0.14120817128861904).epsilon(1e-9));
  CHECK_FALSE(slope.covers(0));
  CHECK_THROWS_AS(run_order_slope(std::vector<double>{1, 1, 1}, std::vector<double>{1, 2, 3}), InputError);
  CHECK_THROWS_AS(run_order_slope(std::vector<double>{1, 2}, std::vector<double>{1, 2}), InputError);
  CHECK_THROWS_AS(run_order_slope(order, std::vector<double>{1, 2, 3}), InputError);
}
