#include "harness/placement.hpp"

#include <cstdint>

#include "reports/json.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("layer \"all\" stands for those that are not named", "[placement]") {
  const TableSpec spec = load_table_spec("gemma4_e4b_ple");
  const Placement placement = placement_from_json(
      parse_json(R"({"name": "p", "layers": {"0": {"source": "dram"}, "all": {"source": "pread", "threads": 3}}})", "p"),
      spec, "p");
  REQUIRE(placement.layers.size() == 42);
  CHECK(placement.layers.at(0).source == "dram");
  for (int k = 1; k < 42; ++k) {
    CHECK(placement.layers.at(k).source == "pread");
    CHECK(placement.layers.at(k).threads == 3);
  }
  CHECK(to_json(placement)["layers"].size() == 42);
  CHECK_THROWS_WITH(placement_from_json(parse_json(R"({"layers": {"0": {"source": "dram"}}})", "p"), spec, "p"),
                    contains_text("layer 1 of table gemma4_e4b_ple"));
  CHECK_THROWS_WITH(placement_from_json(parse_json(R"({"layers": {"all": {"sauce": "dram"}}})", "p"), spec, "p"),
                    contains_text("sauce"));
}
