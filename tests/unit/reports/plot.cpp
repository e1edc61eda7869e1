#include "reports/plot.hpp"

#include <cmath>
#include <cstdlib>
#include <string>

#include "reports/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// The place of a label's text in the figure.
double attribute(const std::string& svg, const std::string& label, const std::string& name) {
  const std::size_t end = svg.find(">" + label + "<");
  REQUIRE(end != std::string::npos);
  const std::size_t begin = svg.rfind(name + "=\"", end);
  REQUIRE(begin != std::string::npos);
  return std::strtod(svg.c_str() + begin + name.size() + 2, nullptr);
}

Plot plot_of(const std::vector<PlotPoint>& points) {
  Plot plot;
  plot.title = "a <title>";
  plot.series = {{"the line", points}};
  return plot;
}

}  // namespace

TEST_CASE("a figure's legend stands where the lines are not", "[plot]") {
  const std::string falls = render_svg(plot_of({{0, 1, {}, {}}, {0.5, 0.9, {}, {}}, {1, 0, {}, {}}}));
  const std::string level = render_svg(plot_of({{0, 0.99, {}, {}}, {1, 1, {}, {}}}));
  CHECK(attribute(falls, "the line", " x") > 380);
  CHECK(attribute(falls, "the line", " y") < 230);
  CHECK(attribute(level, "the line", " x") < 380);
  CHECK(attribute(level, "the line", " y") > 230);
}

TEST_CASE("a figure escapes its texts, and needs finite points", "[plot]") {
  CHECK(render_svg(plot_of({{1, 1, {}, {}}})).find("a &lt;title&gt;") != std::string::npos);
  CHECK_THROWS_AS(render_svg(plot_of({})), InputError);
  CHECK_THROWS_AS(render_svg(plot_of({{std::nan(""), 1, {}, {}}})), InputError);
}
