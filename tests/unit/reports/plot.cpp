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

TEST_CASE("a legend that would hide something in every corner stands beside the axes", "[plot]") {
  Plot plot = plot_of({{0, 0, {}, {}}, {1, 1, {}, {}}});
  plot.series.push_back({"the other line", {{0, 1, {}, {}}, {1, 0, {}, {}}}});
  const std::string crossed = render_svg(plot);
  CHECK(attribute(crossed, "the line", " x") > 740);
  CHECK(attribute(crossed, "the other line", " y") > attribute(crossed, "the line", " y"));
  CHECK(std::strtod(crossed.c_str() + crossed.find(" width=\"") + 8, nullptr) > attribute(crossed, "the other line", " x"));
}

TEST_CASE("series of one colour look alike", "[plot]") {
  const auto stroke = [](const std::string& svg, std::size_t which) {
    std::size_t at = 0;
    for (std::size_t i = 0; i <= which; ++i) at = svg.find("<polyline", at) + 1;
    return svg.substr(svg.find("stroke=\"", at) + 8, 7);
  };
  Plot plot = plot_of({{0, 0, {}, {}}, {1, 1, {}, {}}});
  plot.series.push_back({"another", {{0, 1, {}, {}}, {1, 1, {}, {}}}});
  CHECK(stroke(render_svg(plot), 0) != stroke(render_svg(plot), 1));
  plot.series[1].colour = 0;
  CHECK(stroke(render_svg(plot), 0) == stroke(render_svg(plot), 1));
}

TEST_CASE("a figure escapes its texts, and needs finite points", "[plot]") {
  CHECK(render_svg(plot_of({{1, 1, {}, {}}})).find("a &lt;title&gt;") != std::string::npos);
  CHECK_THROWS_AS(render_svg(plot_of({})), InputError);
  CHECK_THROWS_AS(render_svg(plot_of({{std::nan(""), 1, {}, {}}})), InputError);
}
