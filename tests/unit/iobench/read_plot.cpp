#include "iobench/read_plot.hpp"

#include "reports/error.hpp"
#include "reports/reads_file.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("read times, fits and windows of the example are drawn", "[read_plot]") {
  const Envelope reads = read_envelope(SLACKTIER_SOURCE_DIR "/tests/unit/reports/examples/reads.json", "reads");
  const Plot plot = read_time_plot(reads);
  REQUIRE_FALSE(plot.series.empty());
  const ReadResult result = read_results(reads).at(0);
  std::size_t measured = 0, fitted = 0, windows = 0;
  for (const PlotSeries& series : plot.series) {
    measured += series.label.find(" measured") != std::string::npos;
    fitted += series.label.find(" fitted") != std::string::npos;
    windows += series.label.find(" window") != std::string::npos;
  }
  CHECK(measured == result.points.at(0).t_us.size());
  CHECK(fitted == result.fit.size());
  CHECK(windows == result.verdicts.size());
  CHECK(plot.series[0].points[0].y == Approx(*result.points[0].t_us.begin()->second.mean / 1e3));
  CHECK_THAT(render_svg(plot), contains_text("<svg") && contains_text("layer 1 measured"));
  Envelope other;
  other.kind = "gates";
  CHECK_THROWS_AS(read_time_plot(other), InputError);
}
