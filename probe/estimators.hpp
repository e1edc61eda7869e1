// From steps with a delay to the window of a layer: what a delay X adds to a step is max(0, X - W). Pure functions; times in
// milliseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "reports/averages.hpp"
#include "reports/samples.hpp"

namespace slacktier {

// One step with a delay: the delay, and what the step took more than steps without one did around that time.
struct DelayedStep {
  double x_ms = 0, delta_ms = 0;
};

// All steps with one delay; delta is their median.
struct DelayPoint {
  double x_ms = 0, delta_ms = 0;
  std::size_t n = 0;
};
// Ascending in X; equal delays make one point.
std::vector<DelayPoint> delay_points(std::span<const DelayedStep> steps);

// The published estimator: X - delta at the first X, in ascending order, whose delta exceeds the threshold; and stays above
// it, for a delta that longer delays do not reach is a late step's. Empty when none does.
std::optional<double> threshold_window(std::span<const DelayPoint> points, double threshold_ms);

struct HingeFit {
  double w_ms = 0;                     // the knee
  std::optional<Interval> interval;    // 95%, by bootstrap over steps; empty for fewer than 4 steps behind the knee
  std::optional<Interval> slope;       // of delta over X behind the knee, with its 95% interval; 1 when the method holds
  double noise_ms = 0;                 // robust standard deviation of one step around the fit
  std::size_t behind = 0, before = 0;  // steps on either side of the knee
};

// Fits delta = max(0, X - W) by Huber's loss, which outliers cannot pull away (threshold 1.345 standard deviations: P.
// Huber, Robust Estimation of a Location Parameter, 1964). Throws InputError without steps.
HingeFit fit_hinge(std::span<const DelayedStep> steps, std::uint64_t seed = 1);
// The knee alone.
double hinge_knee(std::span<const DelayedStep> steps);

// Standard deviation of normal values, from their median absolute deviation, which outliers cannot pull away. Throws
// InputError without values.
double robust_deviation(std::span<const double> values);

// Standard deviation of single steps without what they drift: from differences of neighbours, robustly. 0 for fewer than 2.
double step_noise(std::span<const double> in_run_order);

// Steps without delays, in the order of the run, as the baseline of those around them.
class DriftingBaseline {
 public:
  // `place`: of a step in the run; ascending.
  void add(double place, double ms);
  // Median of the steps nearest to `place`. Throws InputError while there are none.
  double at(double place) const;
  std::size_t size() const { return ms_.size(); }
  std::span<const double> steps() const { return ms_; }
  // What the step grew by from the first to the last, by a line through block medians, with its 95% interval. Empty for
  // fewer than 24 steps.
  std::optional<Interval> drift() const;

 private:
  std::vector<double> place_, ms_;
};

// A line through windows: W_k = intercept + k * slope, by least squares.
struct WindowLine {
  Interval ms_per_layer;
  double intercept_ms = 0;
  std::optional<double> r2;
};
// Empty for fewer than 3 layers.
std::optional<WindowLine> window_line(std::span<const int> k, std::span<const double> w_ms);

}  // namespace slacktier
