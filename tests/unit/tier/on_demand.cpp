// Layers that are read only when the model has come to them.
#include <cstdint>

#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

TEST_CASE("on demand: no page is submitted before the main stream is at the gate, and rows are right", "[on_demand]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 1);
  for (const std::string& source : disk_source_names())
    for (const bool layer_first : {true, false})
      for (const bool both : {true, false}) {
        INFO(source << layer_first << both);
        TierOptions options;
        options.first_layer_first = layer_first;
        LayerSetup first = on(source, image, 100), second = on(source, image, 0);
        second.read = ReadMode::on_demand;
        if (both) first.read = ReadMode::on_demand;
        Live live(*device, spec, {first, second}, options);
        // Layers of one source share it, whatever the mode.
        REQUIRE(live.tier->describe_source(1) == live.tier->describe_source(0) + (both ? "" : ", on demand"));
        for (int s = 0; s < 30; ++s) {
          live.draw();
          const StepReport& report = live.step();
          for (std::size_t l = both ? 0 : 1; l < 2; ++l) {
            const LayerReport& layer = report.layers[l];
            REQUIRE(layer.status == StepStatus::ok);
            if (layer.submitted >= 0) REQUIRE(layer.submitted >= layer.opened - layer.stall);
          }
        }
        REQUIRE(live.checks.mismatches == 0);
        REQUIRE(live.checks.undelivered == 0);
        REQUIRE(live.checks.pages > 0);
      }
}

TEST_CASE("on demand: steps without missing rows open their gates without being asked", "[on_demand]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 1);
  LayerSetup layer = on("uring", image, 100'000);
  layer.read = ReadMode::on_demand;
  Live live(*device, spec, {layer, layer});
  live.draw(10);
  live.step();
  live.draw(10);
  for (auto& flag : live.active) flag = 0;
  REQUIRE(live.step().layers[0].counts.pages == 0);
  std::uint64_t without = 0;
  for (int s = 0; s < 60; ++s) {
    live.draw(6);
    without += live.step().layers[0].counts.pages == 0;
  }
  REQUIRE(without > 10);
  REQUIRE(live.checks.mismatches == 0);
  REQUIRE(live.checks.undelivered == 0);
}
