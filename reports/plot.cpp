#include "reports/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reports/error.hpp"

namespace slacktier {
namespace {

constexpr double width = 760, height = 460, left = 70, right = 20, top = 44, bottom = 56;
constexpr const char* colours[] = {"#0b6fa4", "#d1495b", "#2e8b57", "#8b5fbf", "#c77d0a",
                                   "#555555", "#17a2a2", "#e07bb5", "#7a6a00", "#000000"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Axis {
  double lo = 0, hi = 1, from = 0, to = 1;
  double at(double value) const { return from + (value - lo) / (hi - lo) * (to - from); }
};

struct Legend {
  double x = 0, y = 0, wide = 0;
  bool beside = false;  // right of the axes, for which the figure grows
};
// The corner in which it hides no line or mark; without such a corner it stands beside the axes.
Legend place_legend(const Plot& plot, const Axis& x, const Axis& y) {
  std::size_t longest = 0;
  for (const PlotSeries& series : plot.series) longest = std::max(longest, series.label.size());
  const double wide = 44 + 7.0 * static_cast<double>(longest), tall = 18 * static_cast<double>(plot.series.size()) + 4;
  for (const double at_y : {y.to, y.from - tall})
    for (const double at_x : {x.from + 14, x.to - wide}) {
      bool hides = at_x < x.from || at_y < y.to;
      const auto look = [&](double px, double py) {
        hides = hides || (px > at_x - 6 && px < at_x + wide && py > at_y && py < at_y + tall);
      };
      for (const PlotSeries& series : plot.series)
        for (std::size_t i = 0; i < series.points.size(); ++i) {
          const PlotPoint& to = series.points[i];
          const PlotPoint& from = series.line && i > 0 ? series.points[i - 1] : to;
          for (int part = 1; part <= 32; ++part) {
            const double share = part / 32.0;
            look(x.at(from.x + share * (to.x - from.x)), y.at(from.y + share * (to.y - from.y)));
          }
        }
      if (!hides) return {at_x, at_y, wide, false};
    }
  return {x.to + 16, y.to, wide, true};
}

}  // namespace

std::vector<double> axis_ticks(double lo, double hi, int wanted) {
  if (!(hi > lo) || wanted < 1) return {lo};
  const double rough = (hi - lo) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::floor(lo / step + 1e-9), last = std::ceil(hi / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string render_svg(const Plot& plot) {
  double x_lo = 0, x_hi = 0, y_lo = 0, y_hi = 0;
  std::size_t n = 0;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) {
      for (const double value : {point.x, point.y, point.lo.value_or(0), point.hi.value_or(0)})
        if (!std::isfinite(value)) throw InputError(fmt::format("plot '{}': a point is not finite", plot.title));
      x_lo = std::min(x_lo, point.x);
      x_hi = std::max(x_hi, point.x);
      y_lo = std::min({y_lo, point.y, point.lo.value_or(point.y)});
      y_hi = std::max({y_hi, point.y, point.hi.value_or(point.y)});
      ++n;
    }
  if (n == 0) throw InputError(fmt::format("plot '{}': there is nothing to draw", plot.title));
  if (plot.y_max) y_hi = *plot.y_max;
  if (!(x_hi > x_lo)) x_hi = x_lo + 1;
  if (!(y_hi > y_lo)) y_hi = y_lo + 1;
  const std::vector<double> x_ticks = axis_ticks(x_lo, x_hi, 8), y_ticks = axis_ticks(y_lo, y_hi, 6);
  const Axis x{x_ticks.front(), x_ticks.back(), left, width - right};
  const Axis y{y_ticks.front(), y_ticks.back(), height - bottom, top};

  const Legend legend = place_legend(plot, x, y);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      legend.beside ? legend.x + legend.wide : width,
      std::max(height, legend.beside ? legend.y + 18 * static_cast<double>(plot.series.size()) + 10 : 0));
  svg += fmt::format("<text x=\"{}\" y=\"24\" text-anchor=\"middle\" font-size=\"15\">{}</text>\n",
                     (left + width - right) / 2, escaped(plot.title));
  const auto line = [&](double x1, double y1, double x2, double y2, const char* colour, double stroke) {
    svg += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{:.1f}\"/>\n", x1, y1,
        x2, y2, colour, stroke);
  };
  for (const double tick : x_ticks) {
    line(x.at(tick), y.from, x.at(tick), y.to, "#e4e4e4", 1);
    svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.6g}</text>\n", x.at(tick), y.from + 18, tick);
  }
  for (const double tick : y_ticks) {
    line(x.from, y.at(tick), x.to, y.at(tick), "#e4e4e4", 1);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.6g}</text>\n", left - 8, y.at(tick) + 4,
                       std::abs(tick) < 1e-12 ? 0.0 : tick);
  }
  line(x.from, y.from, x.to, y.from, "#333333", 1.2);
  line(x.from, y.from, x.from, y.to, "#333333", 1.2);
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", (left + width - right) / 2, height - 16,
                     escaped(plot.x_label));
  svg += fmt::format("<text transform=\"translate(18 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
                     (top + height - bottom) / 2, escaped(plot.y_label));
  for (std::size_t s = 0; s < plot.series.size(); ++s) {
    const PlotSeries& series = plot.series[s];
    const char* colour = colours[series.colour.value_or(s) % std::size(colours)];
    if (series.line && series.points.size() > 1) {
      svg += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"", colour);
      for (const PlotPoint& point : series.points) svg += fmt::format("{:.1f},{:.1f} ", x.at(point.x), y.at(point.y));
      svg += "\"/>\n";
    }
    for (const PlotPoint& point : series.points) {
      if (point.lo && point.hi) line(x.at(point.x), y.at(*point.lo), x.at(point.x), y.at(*point.hi), colour, 1);
      if (series.marks)
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\" fill=\"{}\"/>\n", x.at(point.x), y.at(point.y),
                           colour);
    }
    const double at = legend.y + 10 + 18 * static_cast<double>(s);
    if (series.line) line(legend.x, at, legend.x + 24, at, colour, 2.4);
    if (series.marks)
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>\n", legend.x + 12, at, colour);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", legend.x + 30, at + 4, escaped(series.label));
  }
  return svg + "</svg>\n";
}

}  // namespace slacktier
