#include "reports/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reports/error.hpp"
#include "reports/probability.hpp"

namespace slacktier {
namespace {

constexpr double claim_tail = 0.01;  // 1 - the confidence of a percentile claim

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

std::optional<double> bound_of_sorted(std::span<const double> sorted, double p) {
  const std::size_t n = sorted.size();
  if (n < samples_needed(p)) return {};
  std::size_t holds = 1, fails = n;  // of t: P(X <= t) grows with t
  while (fails - holds > 1) {
    const std::size_t t = holds + (fails - holds) / 2;
    (binomial_cdf(t, n, 1 - p) <= claim_tail ? holds : fails) = t;
  }
  return sorted[n - holds];
}

}  // namespace

double percentile_of_sorted(std::span<const double> sorted, double p) {
  if (sorted.empty()) throw InputError("no samples: a percentile of nothing");
  if (!(p > 0 && p <= 1)) throw InputError(fmt::format("percentile {} is not in (0, 1]", p));
  // The small step down keeps p * n = 99.00000000000001 at rank 99.
  const double rank = std::ceil(p * static_cast<double>(sorted.size()) - 1e-9);
  return sorted[rank < 1 ? 0 : static_cast<std::size_t>(rank) - 1];
}

double percentile(std::span<const double> samples, double p) { return percentile_of_sorted(sorted_copy(samples), p); }

std::size_t samples_needed(double p) {
  if (!(p > 0 && p < 1)) throw InputError(fmt::format("percentile {} is not in (0, 1)", p));
  std::size_t fails = 1, holds = 2;
  while (binomial_cdf(1, holds, 1 - p) > claim_tail) fails = holds, holds *= 2;
  while (holds - fails > 1) {
    const std::size_t n = fails + (holds - fails) / 2;
    (binomial_cdf(1, n, 1 - p) <= claim_tail ? holds : fails) = n;
  }
  return holds;
}

std::optional<double> percentile_bound(std::span<const double> samples, double p) {
  return bound_of_sorted(sorted_copy(samples), p);
}

Summary summarise(std::span<const double> samples) {
  static const std::size_t p99_needs = samples_needed(0.99);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  Summary summary{samples.size(), nan, nan, nan, nan, nan, {}, {}, p99_needs};
  if (samples.empty()) return summary;
  const double n = static_cast<double>(samples.size());
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / n;
  if (samples.size() > 1) {
    double squares = 0;
    for (const double sample : samples) squares += (sample - summary.mean) * (sample - summary.mean);
    summary.stddev = std::sqrt(squares / (n - 1));
  }
  const std::vector<double> sorted = sorted_copy(samples);
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.p50 = percentile_of_sorted(sorted, 0.5);
  if (samples.size() >= p99_needs) summary.p99 = percentile_of_sorted(sorted, 0.99);
  summary.p99_bound = bound_of_sorted(sorted, 0.99);
  return summary;
}

Interval run_order_slope(std::span<const double> order, std::span<const double> values, double confidence) {
  if (order.size() != values.size())
    throw InputError(fmt::format("run-order slope: {} places for {} values", order.size(), values.size()));
  if (order.size() < 3) throw InputError(fmt::format("run-order slope: {} values, at least 3 are needed", order.size()));
  const double n = static_cast<double>(order.size());
  const double x0 = std::accumulate(order.begin(), order.end(), 0.0) / n;
  const double y0 = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    xx += (order[i] - x0) * (order[i] - x0);
    xy += (order[i] - x0) * (values[i] - y0);
  }
  if (!(xx > 0)) throw InputError("run-order slope: all values have the same place");
  const double slope = xy / xx;
  double residuals = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double residual = values[i] - y0 - slope * (order[i] - x0);
    residuals += residual * residual;
  }
  const double half = -student_quantile((1 - confidence) / 2, n - 2) * std::sqrt(residuals / (n - 2) / xx);
  return {slope, slope - half, slope + half};
}

}  // namespace slacktier
