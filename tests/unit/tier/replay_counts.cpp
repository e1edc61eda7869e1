// What a replay of the decode graph holds, and that nothing is asked of the device beside its launch.
#include <cstdint>

#include "tests/catch.hpp"
#include "tests/counting_device.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("a replay is one launch of a graph whose operations are known", "[replay_counts]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto below = open_test_device();
  CountingDevice device(*below);
  LayerSetup asked = on("uring", image, 30);
  asked.read = ReadMode::on_demand;
  const std::vector<std::vector<LayerSetup>> placements = {
      {on("dram", {}, 0), on("dram", {}, 0)},
      {on("hbm", {}, 0), on("uring", image, 300)},
      {on("uring", image, 300), on("uring", image, 0)},
      {on("uring", image, 0), asked},
  };
  for (const auto& placement : placements) {
    LiveTier live(device, spec, placement);
    const std::size_t on_demand = placement[1].read == ReadMode::on_demand;
    const std::size_t by_host = device.facts().gate == "host-node" ? 2 : 0;
    // Begin: stamp, hash, index copy, post. Layer: stamp, gate, stamp, gather, reset; on demand a host function. End: stamp.
    // The model's: four layers. A tier that reads costs the graph no operation more than one in DRAM.
    CHECK(live.graph->operations() == 4 + 2 * 5 + on_demand + 1 + 4);
    CHECK(live.graph->host_functions() == on_demand + by_host);
    constexpr std::size_t steps = 50;
    device.calls = {};
    for (std::size_t s = 0; s < steps; ++s) {
      live.draw();
      live.launch();
      live.tier->finish_step();
    }
    CHECK(device.calls.graph_launches == steps);
    CHECK(device.calls.synchronizes == steps);  // the caller's own
    CHECK(device.calls.operations == 0);
    CHECK(device.calls.allocations == 0);
  }
}
