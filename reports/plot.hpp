// Figures as SVG, which browsers and GitHub show without anything installed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace slacktier {

struct PlotPoint {
  double x = 0, y = 0;
  std::optional<double> lo, hi;  // a bar beside the point
};

struct PlotSeries {
  std::string label;
  std::vector<PlotPoint> points;  // joined in this order
  bool line = true, marks = true;
  std::optional<std::size_t> colour = {};  // series of one number look alike; else each has its own
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<PlotSeries> series;
  std::optional<double> y_max;  // else from the points; axes begin at 0 unless a point lies below
};

// The figure's text. Throws InputError when there is no point, or one is not finite.
std::string render_svg(const Plot& plot);

// Steps of an axis: about `wanted` round values (1, 2 or 5 times a power of ten) that cover lo … hi.
std::vector<double> axis_ticks(double lo, double hi, int wanted);

}  // namespace slacktier
