// Layers in another GPU's memory. Skipped where the device has no peer.
#include <cstdint>
#include <string>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("layers in a peer's memory serve every row bit for bit", "[resident_peer]") {
  const auto device = open_test_device();
  const std::string peer = device->facts().backend + ":1";
  try {
    device->allocate_peer(peer, 4096);
  } catch (const EnvironmentError& error) {
    return skip_test(error.what());
  }
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  LayerSetup there = on("peer", {}, 0);
  there.peer = peer;
  for (const OutputFormat output : {OutputFormat::bf16, OutputFormat::fp32}) {
    TierOptions options;
    options.output = output;
    LiveTier live(*device, spec, {there, on("hbm", {}, 0)}, options);
    for (int s = 0; s < 200; ++s) {
      live.draw();
      for (const auto& layer : live.step().layers) REQUIRE(layer.status == StepStatus::ok);
    }
    CHECK(live.checks.mismatches == 0);
    CHECK(live.checks.undelivered == 0);
    CHECK(live.tier->describe_source(0).starts_with("memory of " + peer));
  }
}
