// Does a layer's read fit its window, and how far does that carry?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "iobench/measure.hpp"
#include "reports/reads_file.hpp"
#include "reports/windows_file.hpp"

namespace slacktier {

// What the mean T_k becomes when every layer's pages are multiplied: a + slope * factor, in us.
struct LoadLine {
  double a_us = 0, slope_us = 0;
};
// Through the mean T_k of two points whose pages are in one proportion.
LoadLine line_through(const PointSamples& small, const PointSamples& full, std::size_t layer);
// Of a fit, at the pages of factor 1.
LoadLine line_of(const ReadFit& fit, const std::map<int, std::int64_t>& pages);

// fits: the 95% interval of s + mean T_k (Student's t over the rounds' means) and the p99's upper bound (99% confidence) lie
// within the window. does-not-fit: the mean's interval lies beyond it, or, with too few rounds for
// an interval, each of at least six batches does. Else unclear, and the reason says what is missing.
// max_batch needs `batch`, the batch that the measured pages belong to; both maxima are where s + the mean T_k meets the
// window on `line`: estimates, not measurements.
ReadVerdict judge(double window_ms, double resolve_ms, const PointSamples& point, std::size_t layer,
                  const std::optional<LoadLine>& line, std::optional<std::uint32_t> batch);

}  // namespace slacktier
