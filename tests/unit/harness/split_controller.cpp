#include "harness/split_controller.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tier/control.hpp"

using namespace slacktier;

TEST_CASE("the controller climbs to the best share from anywhere, through noise, and holds", "[split_controller]") {
  std::mt19937_64 random(7);
  const auto noise = [&] { return 0.01 * (static_cast<double>(random() % 2001) / 1000 - 1); };
  for (const double best : {0.0, 0.3, 0.5, 0.8, 1.0})
    for (const double first : {0.0, 0.5, 1.0}) {
      CAPTURE(best, first);
      SplitController controller({.first = first});
      // Flat near the optimum and steep far from it, as measured: cost in ms over f.
      const auto cost = [&](double f) { return 30 + 4 * (f - best) * (f - best) + noise(); };
      int blocks = 0;
      while (!controller.holding() && blocks < 200) {
        CHECK(controller.share() >= 0);
        CHECK(controller.share() <= 1);
        controller.observe(cost(controller.share()));
        ++blocks;
      }
      CHECK(controller.holding());
      CHECK(blocks < 60);
      CHECK(std::abs(controller.best() - best) <= 0.14);
      CHECK(controller.share() == controller.best());
    }
}

TEST_CASE("the controller climbs again when the traffic changes, and not for noise", "[split_controller]") {
  SplitController controller;
  double best = 0.8;
  const auto cost = [&](double f) { return 30 + 4 * (f - best) * (f - best); };
  while (!controller.holding()) controller.observe(cost(controller.share()));
  for (int i = 0; i < 50; ++i) controller.observe(cost(controller.share()) + (i % 2 ? 0.03 : -0.0));
  CHECK(controller.holding());
  best = 0.1;
  controller.observe(cost(controller.share()));
  CHECK_FALSE(controller.holding());
  for (int i = 0; i < 100 && !controller.holding(); ++i) controller.observe(cost(controller.share()));
  CHECK(controller.best() < 0.3);
}

TEST_CASE("the controller's file is one that a running tier reads", "[split_controller]") {
  const TableSpec spec = load_table_spec("engram_v41");
  const Control control = parse_control(split_control_file(1, 14, 0.25, 1'000'001), "control.json", spec);
  CHECK(control.layers.at(1).cache_rows == std::vector<std::uint64_t>{250'000});
  CHECK(control.layers.at(14).cache_rows == std::vector<std::uint64_t>{750'001});
}

TEST_CASE("the controller refuses what is no share and no time", "[split_controller]") {
  CHECK_THROWS_AS(SplitController({.first = 1.5}), UsageError);
  CHECK_THROWS_AS(SplitController({.step = 0}), UsageError);
  CHECK_THROWS_AS(SplitController({.noise_ms = -1}), UsageError);
  SplitController controller;
  CHECK_THROWS_AS(controller.observe(std::numeric_limits<double>::quiet_NaN()), UsageError);
}
