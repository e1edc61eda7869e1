#include "reports/probability.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

namespace slacktier {
namespace {

// Root of the increasing function `f` on [lo, hi], to the last bit that bisection can tell.
template <class F>
double bisect(F f, double lo, double hi) {
  for (int i = 0; i < 200; ++i) {
    const double middle = lo + (hi - lo) / 2;
    if (middle <= lo || middle >= hi) break;
    (f(middle) < 0 ? lo : hi) = middle;
  }
  return lo + (hi - lo) / 2;
}

// The continued fraction of the incomplete beta function by Lentz's method; converges fast for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double tiny = 1e-300;
  const auto guarded = [](double value) { return std::abs(value) < tiny ? tiny : value; };
  double c = 1, d = 1 / guarded(1 - (a + b) * x / (a + 1)), product = d;
  for (int m = 1; m < 100000; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / guarded(1 + even * d);
    c = guarded(1 + even / c);
    product *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / guarded(1 + odd * d);
    c = guarded(1 + odd / c);
    product *= d * c;
    if (std::abs(d * c - 1) < 4 * std::numeric_limits<double>::epsilon()) break;
  }
  return product;
}

double student_cdf(double t, double freedom) {
  const double tail = 0.5 * incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
  return t < 0 ? tail : 1 - tail;
}

}  // namespace

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);  // the lower tail keeps its digits
  return bisect([p](double z) { return normal_cdf(z) - p; }, -40, 0);
}

double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  // lgamma_r: lgamma writes a global.
  int sign = 0;
  const double scale = std::exp(::lgamma_r(a + b, &sign) - ::lgamma_r(a, &sign) - ::lgamma_r(b, &sign) + a * std::log(x) +
                                b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return scale * beta_fraction(x, a, b) / a;
  return 1 - scale * beta_fraction(1 - x, b, a) / b;
}

double student_quantile(double p, double freedom) {
  if (p == 0.5) return 0;
  if (p > 0.5) return -student_quantile(1 - p, freedom);
  double lo = -1;
  while (student_cdf(lo, freedom) > p) lo *= 2;
  return bisect([&](double t) { return student_cdf(t, freedom) - p; }, lo, 0);
}

double binomial_cdf(std::uint64_t k, std::uint64_t n, double p) {
  if (k >= n) return 1;
  return incomplete_beta(1 - p, static_cast<double>(n - k), static_cast<double>(k) + 1);
}

}  // namespace slacktier
