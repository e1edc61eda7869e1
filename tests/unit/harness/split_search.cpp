// The controller at work on a placement: what it is told, what it changes.
#include "harness/split_search.hpp"

#include <cstdint>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tier/control.hpp"

using namespace slacktier;

namespace {

Placement split(std::uint64_t rows1, std::uint64_t rows14) {
  Placement placement;
  placement.name = "split";
  for (const auto& [k, rows] : {std::pair{1, rows1}, {14, rows14}}) {
    placement.layers[k].source = "uring";
    placement.layers[k].cache_rows_per_rank = rows;
  }
  return placement;
}

}  // namespace

TEST_CASE("the search begins with the placement's split and ends near the best", "[split_search]") {
  SplitSearch search(split(0, 1000), {.settle_steps = 2, .observed_steps = 5, .noise_ms = 0.001});
  CHECK(search.rows(1) == 0);
  CHECK(search.rows(14) == 1000);
  // The steps wait least with 700 rows in layer 1.
  int changes = 0;
  for (int s = 0; s < 2000; ++s) {
    const double off = static_cast<double>(search.rows(1)) / 1000 - 0.7;
    changes += search.step(1 + off * off);
  }
  CHECK(changes > 2);
  const Json told = search.describe();
  CHECK(told.at("holding") == true);
  CHECK(told.at("share").get<double>() > 0.6);
  CHECK(told.at("share").get<double>() < 0.8);
  CHECK(search.rows(1) + search.rows(14) == 1000);
  const Control control = parse_control(search.control_file(), "control.json", load_table_spec("engram_v41"));
  CHECK(control.layers.at(14).cache_rows == std::vector<std::uint64_t>{search.rows(14)});
}

TEST_CASE("steps right after a change are not looked at", "[split_search]") {
  SplitSearch search(split(500, 500), {.settle_steps = 3, .observed_steps = 2});
  CHECK_FALSE(search.step(1));
  CHECK(search.step(1));  // the first observation: now another share is tried
  for (const double settling : {100.0, 100.0, 100.0}) CHECK_FALSE(search.step(settling));
  CHECK_FALSE(search.step(2));
  search.step(4);
  CHECK(search.describe().at("observations").at(1).at("stall_ms") == 3);
  CHECK(search.describe().at("observations").at(1).at("step") == 7);
}

TEST_CASE("both caches get room for all rows", "[split_search]") {
  const Placement roomy = with_room_to_split(split(200, 800));
  CHECK(roomy.layers.at(1).cache_rows_per_rank == 200);
  CHECK(roomy.layers.at(1).cache_rows_reserved_per_rank == 1000);
  CHECK(roomy.layers.at(14).cache_rows_reserved_per_rank == 1000);
}

TEST_CASE("what has no cache to split is refused", "[split_search]") {
  CHECK_THROWS_WITH(SplitSearch(split(0, 0)), contains_text("no layer has a cache to share"));
  Placement one = split(500, 500);
  one.layers[1].source = "dram";
  CHECK_THROWS_WITH(SplitSearch(one), contains_text("1 layers are read in pages"));
  Placement fixed = split(500, 500);
  fixed.cache_policy = "static";
  CHECK_THROWS_AS(with_room_to_split(fixed), UsageError);
}
