// Steps whose operations are queued one by one, against replays of a captured graph.
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("without a graph every step delivers, hits and reads the same", "[eager]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 2);
  const auto device = open_test_device();
  LayerSetup asked = on("pread", image, 40);
  asked.read = ReadMode::on_demand;
  const std::vector<std::vector<LayerSetup>> placements = {
      {on("dram", {}, 0), on("hbm", {}, 0)},
      {on("uring", image, 300), on("uring", image, 50)},
      {on("uring", image, 0), asked},
  };
  for (const auto& placement : placements) {
    LiveTier replayed(*device, spec, placement);
    LiveTier eager(*device, spec, placement, {}, {}, false);
    REQUIRE(replayed.graph);
    REQUIRE_FALSE(eager.graph);
    std::uint64_t pages = 0;
    for (int s = 0; s < 60; ++s) {
      replayed.draw();
      eager.context = replayed.context;
      eager.active = replayed.active;
      const StepReport& a = replayed.step();
      const StepReport& b = eager.step();
      REQUIRE(a.epoch == b.epoch);
      for (std::size_t l = 0; l < 2; ++l) {
        REQUIRE(a.layers[l].status == StepStatus::ok);
        REQUIRE(b.layers[l].status == StepStatus::ok);
        REQUIRE(b.layers[l].counts.hits == a.layers[l].counts.hits);
        REQUIRE(b.layers[l].counts.misses == a.layers[l].counts.misses);
        REQUIRE(b.layers[l].counts.reused == a.layers[l].counts.reused);
        REQUIRE(b.layers[l].counts.pages == a.layers[l].counts.pages);
        REQUIRE(b.layers[l].opened >= 0);
        pages += b.layers[l].counts.pages;
        const auto one = replayed.tier->core(l).descriptors(), other = eager.tier->core(l).descriptors();
        REQUIRE(one.size() == other.size());
        for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(one[i].kind() == other[i].kind());
      }
      REQUIRE(b.step > 0);
    }
    // Both were compared with the rows' origin, value by value.
    CHECK(replayed.checks.mismatches == 0);
    CHECK(eager.checks.mismatches == 0);
    CHECK(eager.checks.checked == replayed.checks.checked);
    CHECK((pages > 0) == (placement[0].source == "uring"));
  }
}
