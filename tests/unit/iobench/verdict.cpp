#include "iobench/verdict.hpp"

#include <cstdint>
#include <fstream>
#include <random>

#include "platforms/error.hpp"
#include "reports/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Batches of mean T `mean_us` in ten rounds, spread by `sigma_us`.
PointSamples samples(double mean_us, double sigma_us, std::size_t batches, double factor = 1) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(mean_us, sigma_us);
  PointSamples point;
  point.pages = {{14, static_cast<std::uint32_t>(700 * factor)}};
  point.t_us.resize(1);
  for (std::size_t b = 0; b < batches; ++b) {
    point.t_us[0].push_back(noise(random));
    point.wall_us.push_back(0);
    if ((b + 1) % (batches / 10) == 0) point.round_end.push_back(b + 1);
  }
  return point;
}

}  // namespace

TEST_CASE("verdicts: fits, does not, and what is missing to tell", "[verdict]") {
  const ReadVerdict fits = judge(9.35, 0.1, samples(5000, 100, 700), 0, {}, 128);
  CHECK(fits.fits == Fits::yes);
  CHECK(*fits.headroom_mean_ms == Approx(4.25).margin(0.02));
  CHECK(fits.headroom_p99_ms.has_value());
  CHECK_FALSE(fits.max_batch.has_value());
  const ReadVerdict late = judge(4.0, 0.1, samples(5000, 100, 700), 0, {}, 128);
  CHECK(late.fits == Fits::no);
  CHECK(late.reason.find(" ms too late on average") != std::string::npos);
  // s counts: 4.9 + 0.2 > 5.0.
  CHECK(judge(5.0, 0.2, samples(4900, 10, 700), 0, {}, {}).fits == Fits::no);
  const ReadVerdict tail = judge(5.3, 0, samples(5000, 150, 700), 0, {}, 128);
  CHECK(tail.fits == Fits::unclear);
  CHECK(tail.reason.find("p99 may be") != std::string::npos);
  CHECK(judge(9, 0, samples(5000, 100, 100), 0, {}, 128).reason.find("needs 662 batches") != std::string::npos);
  CHECK(judge(5.0, 0, samples(5000, 100, 700), 0, {}, 128).reason.find("covers") != std::string::npos);
  // Too few rounds for an interval, but every batch was late; and one that was not.
  PointSamples few = samples(9000, 10, 20);
  few.round_end = {20};
  CHECK(judge(5, 0, few, 0, {}, {}).fits == Fits::no);
  CHECK(judge(5, 0, few, 0, {}, {}).reason.find("even the fastest of 20") != std::string::npos);
  few.t_us[0][3] = 100;
  CHECK(judge(5, 0, few, 0, {}, {}).fits == Fits::unclear);
  PointSamples empty = samples(1, 0, 10);
  empty.t_us[0].clear();
  CHECK(judge(1, 0, empty, 0, {}, {}).reason == "nothing was measured");
}

TEST_CASE("the largest batch and number of tenants lie where the line meets the window", "[verdict]") {
  const PointSamples full = samples(8000, 1, 700), small = samples(2750, 1, 700, 0.25);
  const LoadLine line = line_through(small, full, 0);
  CHECK(line.a_us == Approx(1000).margin(2));
  CHECK(line.slope_us == Approx(7000).margin(2));
  const ReadVerdict verdict = judge(22.1, 0.1, full, 0, line, 128);
  CHECK(*verdict.max_tenants == 3);
  CHECK(*verdict.max_batch == Approx(384).margin(1));
  const ReadVerdict never = judge(0.5, 0.1, full, 0, line, 128);
  CHECK(*never.max_tenants == 0);
  CHECK(*never.max_batch == 0);
  ReadFit fit;
  fit.k = 14;
  fit.a_us = 100;
  fit.b_us = {{1, 1.0}, {14, 2.0}};
  CHECK(line_of(fit, {{1, 100}, {14, 300}}).slope_us == Approx(700));
}

TEST_CASE("windows are taken from text or a file, or refused by name", "[verdict]") {
  const Windows windows = parse_windows("1:0.27,14:9.35", {1, 14}, {});
  CHECK(windows.ms.at(14) == 9.35);
  CHECK_THROWS_WITH(parse_windows("1:0.27", {1, 14}, {}), contains_text("no window of layer 14"));
  for (const char* bad : {"1", "1:", "1:x", ":3", "1:-2", "a:3", "1:nan"}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_windows(bad, {1}, {}), InputError);
  }
  const Windows file = parse_windows(SLACKTIER_SOURCE_DIR "/tests/unit/reports/examples/windows.json", {}, {});
  CHECK_FALSE(file.ms.empty());
  CHECK_THROWS_AS(parse_windows("no-such-file.json", {1}, {}), InputError);
}
