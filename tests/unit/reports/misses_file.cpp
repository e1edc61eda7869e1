#include "reports/misses_file.hpp"

#include "reports/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/examples.hpp"

using namespace slacktier;

TEST_CASE("miss curves survive being structures", "[misses_file]") {
  const Envelope envelope = read_envelope(example_path("misses"));
  const auto results = misses_results(envelope);
  REQUIRE(results.size() == 1);
  CHECK(results[0].sampled->rate == 0.01);
  const RankMisses& rank = results[0].layers.at(0).ranks.at(0);
  CHECK(rank.curve.at(1).decode_hit == std::optional<double>(0.74));
  CHECK_FALSE(rank.curve[1].pages_p99);
  CHECK(rank.curve[1].hit_by_order.at(4) == std::optional<double>(0.61));
  Envelope again = envelope;
  set_misses_results(again, results);
  CHECK(again.results == envelope.results);
}

TEST_CASE("a curve is read between its points and not beyond them", "[misses_file]") {
  std::vector<MissPoint> curve(3);
  curve[0].pages_mean = 400;
  curve[1].rows = 1000;
  curve[1].pages_mean = 200;
  curve[2].rows = 3000;
  CHECK(at_rows(curve, 0, &MissPoint::pages_mean) == std::optional<double>(400));
  CHECK(at_rows(curve, 250, &MissPoint::pages_mean) == std::optional<double>(350));
  CHECK_FALSE(at_rows(curve, 2000, &MissPoint::pages_mean));
  curve[2].pages_mean = 100;
  CHECK(at_rows(curve, 2000, &MissPoint::pages_mean) == std::optional<double>(150));
  CHECK_FALSE(at_rows(curve, 4000, &MissPoint::pages_mean));
  curve[2].pages_mean = 200;
  CHECK(at_rows(curve, 4000, &MissPoint::pages_mean) == std::optional<double>(200));
}

TEST_CASE("a misses file of another kind or with falling rows is refused by name", "[misses_file]") {
  CHECK_THROWS_WITH(misses_results(read_envelope(example_path("reads"))),
                    contains_text("is a 'reads' file; a 'misses' file is needed"));
  Envelope envelope = read_envelope(example_path("misses"));
  envelope.results[0]["layers"][0]["ranks"][0]["curve"][1]["rows"] = 0;
  CHECK_THROWS_WITH(misses_results(envelope), contains_text("curve/1/rows: 0 does not rise"));
}

TEST_CASE("tables and figure say what a misses file holds", "[misses_file]") {
  const Envelope envelope = read_envelope(example_path("misses"));
  const auto tables = misses_tables(envelope);
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].rows.size() == 2);
  const std::string text = render(tables[0], TableFormat::text);
  CHECK_THAT(text, contains_text("agent, lru, 64 sessions, decode"));
  CHECK_THAT(text, contains_text("standard error of a hit rate 0.40 points"));
  CHECK_THAT(render_svg(misses_plot(envelope)), contains_text("layer 1 rank 3"));
}
