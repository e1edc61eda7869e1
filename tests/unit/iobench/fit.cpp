#include "iobench/fit.hpp"

#include <cstdint>
#include <random>

#include "iobench/sweep.hpp"
#include "platforms/error.hpp"
#include "reports/averages.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// T1 = 300 + 3 P1, T14 = 500 + 1 P1 + 2 P14, with noise of `sigma` us on each batch.
std::vector<PointSamples> made_points(double sigma, const std::vector<std::vector<LayerPages>>& pages) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 1);
  std::vector<PointSamples> points;
  for (const auto& each : pages) {
    PointSamples point;
    point.pages = each;
    point.t_us.resize(each.size());
    for (int b = 0; b < 50; ++b) {
      point.wall_us.push_back(0);
      for (std::size_t l = 0; l < each.size(); ++l) {
        const double p1 = each[0].pages, p14 = each.size() > 1 ? each[1].pages : 0;
        point.t_us[l].push_back((l == 0 ? 300 + 3 * p1 : 500 + p1 + 2 * p14) + sigma * noise(random));
      }
    }
    points.push_back(point);
  }
  return points;
}

}  // namespace

TEST_CASE("the fit finds the line that made the points, and its intervals cover it", "[fit]") {
  const auto pages = sweep_points({{1, 700}, {14, 640}}, {2, 8, 16});
  REQUIRE(pages.size() == 9);
  const ReadFit exact = fit_read_time(14, made_points(0, pages));
  CHECK(exact.a_us == Approx(500).margin(1e-6));
  CHECK(exact.b_us.at(1) == Approx(1).margin(1e-9));
  CHECK(exact.b_us.at(14) == Approx(2).margin(1e-9));
  CHECK(*exact.r2 == Approx(1));
  CHECK(exact.range.at(14) == std::pair<std::int64_t, std::int64_t>{80, 640});
  CHECK_FALSE(exact.extrapolates({{1, 87}, {14, 640}}));
  CHECK(exact.extrapolates({{1, 700}, {14, 641}}));
  CHECK(exact.at({{1, 100}, {14, 100}}) == Approx(800));

  const auto noisy = made_points(200, pages);
  const ReadFit fit = fit_read_time(1, noisy);
  CHECK(fit.a_lo_us < 300);
  CHECK(fit.a_hi_us > 300);
  CHECK(fit.b_lo_us.at(1) < 3);
  CHECK(fit.b_hi_us.at(1) > 3);
  CHECK(*fit.r2 > 0.99);
  CHECK(*fit.r2 < 1);
  double sum = 0;
  for (const PointSamples& point : noisy) sum += mean(point.t_us[0]) - fit.at(pages_by_layer(point.pages));
  CHECK(sum == Approx(0).margin(1e-3));
}

TEST_CASE("a fit that the loads cannot tell is refused, with what to vary", "[fit]") {
  CHECK_THROWS_WITH(
      fit_read_time(1, made_points(0, {{{1, 10}, {14, 10}}, {{1, 20}, {14, 20}}, {{1, 30}, {14, 30}}, {{1, 40}, {14, 40}}})),
      contains_text("vary only together"));
  CHECK_THROWS_WITH(fit_read_time(1, made_points(0, {{{1, 10}}, {{1, 20}}})), contains_text("at least 3 different loads"));
  // A layer whose pages never change is no parameter.
  const ReadFit fit = fit_read_time(14, made_points(0, {{{1, 50}, {14, 10}}, {{1, 50}, {14, 20}}, {{1, 50}, {14, 40}}}));
  CHECK(fit.b_us.size() == 1);
  CHECK(fit.a_us == Approx(550));
}

TEST_CASE("a sweep's loads: every combination, or one layer at a time when those are too many", "[fit]") {
  const auto all = sweep_points({{1, 160}, {14, 0}}, {4, 16});
  REQUIRE(all.size() == 2);
  CHECK(all[0] == std::vector<LayerPages>{{1, 160}, {14, 0}});
  CHECK(all[1] == std::vector<LayerPages>{{1, 40}, {14, 0}});
  std::vector<LayerPages> many;
  for (int k = 0; k < 10; ++k) many.push_back({k, 16});
  const auto some = sweep_points(many, {4, 8, 16});
  CHECK(some.size() == 1 + 2 * 11);
}
