#include "probe/estimators.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "reports/error.hpp"
#include "reports/probability.hpp"

namespace slacktier {
namespace {

constexpr double huber = 1.345;
constexpr double to_deviation = 1.4826;  // of a normal distribution, from its median absolute deviation
constexpr double least_noise_ms = 1e-5;  // clocks tick in nanoseconds
constexpr std::size_t neighbours = 9;    // steps of a local baseline
constexpr std::size_t resamples = 400;
constexpr double plenty = 1e300;

double residual(const DelayedStep& step, double w) { return step.delta_ms - std::max(0.0, step.x_ms - w); }

double loss(std::span<const DelayedStep> steps, double w, double bend) {
  double sum = 0;
  for (const DelayedStep& step : steps) {
    const double r = std::abs(residual(step, w));
    sum += r <= bend ? r * r / (2 * bend) : r - bend / 2;
  }
  return sum;
}

// The loss has few minima: a scan finds the valley, thirds narrow it.
double minimum(std::span<const DelayedStep> steps, double lo, double hi, double bend, int scan) {
  double best = lo, least = plenty;
  for (int i = 0; i <= scan; ++i) {
    const double w = lo + (hi - lo) * i / scan;
    const double here = loss(steps, w, bend);
    if (here < least) least = here, best = w;
  }
  double a = best - (hi - lo) / scan, b = best + (hi - lo) / scan;
  for (int i = 0; i < 40 && b - a > 1e-7; ++i) {
    const double third = (b - a) / 3;
    if (loss(steps, a + third, bend) < loss(steps, b - third, bend))
      b -= third;
    else
      a += third;
  }
  return (a + b) / 2;
}

struct Range {
  double lo = plenty, hi = -plenty;
};
Range range_of(std::span<const DelayedStep> steps) {
  Range range;
  for (const DelayedStep& step : steps) {
    range.lo = std::min({range.lo, step.x_ms - step.delta_ms, step.x_ms});
    range.hi = std::max(range.hi, step.x_ms);
  }
  return range;
}

double noise_around(std::span<const DelayedStep> steps, double w) {
  std::vector<double> residuals;
  for (const DelayedStep& step : steps) residuals.push_back(std::abs(residual(step, w)));
  return std::max(least_noise_ms, to_deviation * median(residuals));
}

struct Knee {
  double w = 0, noise = 0;
};
Knee knee_of(std::span<const DelayedStep> steps) {
  if (steps.empty()) throw InputError("a window of no steps");
  const Range range = range_of(steps);
  const double coarse = minimum(steps, range.lo, range.hi, least_noise_ms, 400);
  Knee knee{coarse, noise_around(steps, coarse)};
  for (int i = 0; i < 2; ++i) {
    const double reach = 6 * knee.noise + (range.hi - range.lo) / 200;
    knee.w = minimum(steps, knee.w - reach, knee.w + reach, huber * knee.noise, 60);
    knee.noise = noise_around(steps, knee.w);
  }
  return knee;
}

// Huber's line by reweighting. NaN without two delays.
double robust_slope(std::span<const DelayedStep> steps, double noise) {
  double slope = 1, offset = 0;
  std::vector<double> weight(steps.size(), 1.0);
  for (int i = 0; i < 12; ++i) {
    double n = 0, sx = 0, sy = 0;
    for (std::size_t j = 0; j < steps.size(); ++j)
      n += weight[j], sx += weight[j] * steps[j].x_ms, sy += weight[j] * steps[j].delta_ms;
    double xx = 0, xy = 0;
    for (std::size_t j = 0; j < steps.size(); ++j) {
      const double dx = steps[j].x_ms - sx / n;
      xx += weight[j] * dx * dx;
      xy += weight[j] * dx * (steps[j].delta_ms - sy / n);
    }
    if (!(xx > 0)) return std::numeric_limits<double>::quiet_NaN();
    slope = xy / xx;
    offset = sy / n - slope * sx / n;
    for (std::size_t j = 0; j < steps.size(); ++j) {
      const double r = std::abs(steps[j].delta_ms - offset - slope * steps[j].x_ms);
      weight[j] = r <= huber * noise ? 1 : huber * noise / r;
    }
  }
  return slope;
}

// The percentile interval of few samples is too narrow: tails widened as in reports/samples.hpp (Hesterberg 2015).
Interval expanded(double estimate, std::vector<double> draws, std::size_t n) {
  std::sort(draws.begin(), draws.end());
  const double size = static_cast<double>(std::max<std::size_t>(n, 2));
  const double tail = normal_cdf(std::sqrt(size / (size - 1)) * student_quantile(0.025, size - 1));
  return {estimate, percentile_of_sorted(draws, std::max(tail, 1e-9)), percentile_of_sorted(draws, 1 - tail)};
}

}  // namespace

std::vector<DelayPoint> delay_points(std::span<const DelayedStep> steps) {
  std::vector<DelayedStep> sorted(steps.begin(), steps.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.x_ms < b.x_ms; });
  std::vector<DelayPoint> points;
  for (std::size_t begin = 0; begin < sorted.size();) {
    std::vector<double> deltas;
    std::size_t end = begin;
    for (; end < sorted.size() && sorted[end].x_ms == sorted[begin].x_ms; ++end) deltas.push_back(sorted[end].delta_ms);
    points.push_back({sorted[begin].x_ms, median(deltas), deltas.size()});
    begin = end;
  }
  return points;
}

std::optional<double> threshold_window(std::span<const DelayPoint> points, double threshold_ms) {
  const auto shown = [&](const DelayPoint& point) { return point.delta_ms > threshold_ms; };
  const auto first = std::find_if_not(points.rbegin(), points.rend(), shown).base();
  if (first == points.end()) return {};
  return first->x_ms - first->delta_ms;
}

double hinge_knee(std::span<const DelayedStep> steps) { return knee_of(steps).w; }

HingeFit fit_hinge(std::span<const DelayedStep> steps, std::uint64_t seed) {
  const Knee knee = knee_of(steps);
  HingeFit fit;
  fit.w_ms = knee.w;
  fit.noise_ms = knee.noise;
  std::vector<DelayedStep> behind;
  for (const DelayedStep& step : steps) {
    (step.x_ms > knee.w ? fit.behind : fit.before) += 1;
    if (step.x_ms > knee.w + 2 * knee.noise) behind.push_back(step);
  }
  if (fit.behind < 4) return fit;

  std::mt19937_64 random(seed);
  const auto draw = [&](const std::vector<DelayedStep>& from, std::vector<DelayedStep>& to) {
    to.clear();
    for (std::size_t i = 0; i < from.size(); ++i) to.push_back(from[random() % from.size()]);
  };
  const std::vector<DelayedStep> all(steps.begin(), steps.end());
  std::vector<DelayedStep> drawn;
  std::vector<double> knees, slopes;
  const double reach = 5 * knee.noise;
  for (std::size_t i = 0; i < resamples; ++i) {
    draw(all, drawn);
    knees.push_back(minimum(drawn, knee.w - reach, knee.w + reach, huber * knee.noise, 24));
  }
  fit.interval = expanded(knee.w, std::move(knees), fit.behind);

  const Range range = range_of(behind);
  if (behind.size() < 4 || range.hi - knee.w < 10 * knee.noise) return fit;
  const double slope = robust_slope(behind, knee.noise);
  if (!std::isfinite(slope)) return fit;
  for (std::size_t i = 0; i < resamples; ++i) {
    draw(behind, drawn);
    if (const double s = robust_slope(drawn, knee.noise); std::isfinite(s)) slopes.push_back(s);
  }
  fit.slope = expanded(slope, std::move(slopes), behind.size());
  return fit;
}

double robust_deviation(std::span<const double> values) {
  const double middle = median(values);
  std::vector<double> apart;
  for (const double value : values) apart.push_back(std::abs(value - middle));
  return to_deviation * median(apart);
}

double step_noise(std::span<const double> in_run_order) {
  if (in_run_order.size() < 2) return 0;
  std::vector<double> differences;
  for (std::size_t i = 1; i < in_run_order.size(); ++i)
    differences.push_back(std::abs(in_run_order[i] - in_run_order[i - 1]));
  return to_deviation * median(differences) / std::sqrt(2.0);
}

void DriftingBaseline::add(double place, double ms) {
  place_.push_back(place);
  ms_.push_back(ms);
}

double DriftingBaseline::at(double place) const {
  if (ms_.empty()) throw InputError("no step without a delay to compare with");
  const std::size_t n = std::min(neighbours, ms_.size());
  const auto after = static_cast<std::size_t>(std::lower_bound(place_.begin(), place_.end(), place) - place_.begin());
  std::size_t begin = after > n / 2 ? after - n / 2 : 0;
  begin = std::min(begin, ms_.size() - n);
  return median(std::span(ms_).subspan(begin, n));
}

std::optional<Interval> DriftingBaseline::drift() const {
  constexpr std::size_t blocks = 8;
  if (ms_.size() < 3 * blocks) return {};
  std::vector<double> where, level;
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t begin = b * ms_.size() / blocks, end = (b + 1) * ms_.size() / blocks;
    where.push_back(median(std::span(place_).subspan(begin, end - begin)));
    level.push_back(median(std::span(ms_).subspan(begin, end - begin)));
  }
  const double length = place_.back() - place_.front();
  if (!(where.back() > where.front())) return {};
  const Interval slope = run_order_slope(where, level);
  return Interval{slope.estimate * length, slope.lo * length, slope.hi * length};
}

std::optional<WindowLine> window_line(std::span<const int> k, std::span<const double> w_ms) {
  if (k.size() < 3) return {};
  const std::vector<double> x(k.begin(), k.end());
  WindowLine line;
  line.ms_per_layer = run_order_slope(x, w_ms);
  const double n = static_cast<double>(x.size());
  const double x0 = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double y0 = std::accumulate(w_ms.begin(), w_ms.end(), 0.0) / n;
  line.intercept_ms = y0 - line.ms_per_layer.estimate * x0;
  double rest = 0, all = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double r = w_ms[i] - line.intercept_ms - line.ms_per_layer.estimate * x[i];
    rest += r * r;
    all += (w_ms[i] - y0) * (w_ms[i] - y0);
  }
  if (all > 0) line.r2 = 1 - rest / all;
  return line;
}

}  // namespace slacktier
