// Thousands of replays under random delays and faults: nothing stale, no hang, and every layer that failed is named.
#include <cstdint>
#include <string>

#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("replays with random delays and faults release nothing stale", "[replays]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_test_device();
#if defined(__SANITIZE_THREAD__)
  const int replays = 500;  // ten times as slow, and one race is found in few
#else
  // The cpu device's steps are paced by timed waits on a machine that others use.
  const int replays = device->facts().backend == "cpu" ? 1'500 : 10'000;
#endif
  TierOptions options;
  options.watchdog = 30'000'000;
  options.verify_checksum = true;
  const std::string damaged = "faulty:class=eio+short+torn+stale+zero+foreign+misplaced,probability=0.0005,seed=4";
  const std::string late = "faulty:class=late,probability=0.00005,late_ms=60,seed=5";
  LiveTier live(*device, spec,
                {on("uring", image, 60, 1, {damaged, late, "delayed:latency_us=1"}),
                 on("pread", image, 500, 2, {late, damaged, "delayed:latency_us=1"})},
                options);
  std::uint64_t ok = 0, failed = 0, timed_out = 0, misnamed = 0, fresh = 0;
  for (int s = 0; s < replays; ++s) {
    if (s % 100 == 0) {
      Control control;
      for (const auto& layer : spec.layers) {
        LayerControl& change = control.layers[layer.layer];
        change.delay.emplace();
        change.delay->latency_us = static_cast<double>(live.random() % 200);
      }
      live.tier->apply(control);
    }
    live.draw(s % 3 == 0 ? 40 : 400);
    const StepReport& report = live.step();
    fresh += report.epoch == static_cast<std::uint64_t>(s + 1);
    for (std::size_t l = 0; l < 2; ++l) {
      const LayerReport& layer = report.layers[l];
      ok += layer.status == StepStatus::ok;
      failed += layer.status == StepStatus::read_error;
      timed_out += layer.status == StepStatus::timed_out;
      const std::string name = "layer " + std::to_string(spec.layers[l].layer) + ": ";
      // Steps without buffers follow late ones and have no page to name.
      if (layer.status == StepStatus::read_error || layer.status == StepStatus::timed_out)
        misnamed += !layer.fault.starts_with(name);
    }
  }
  CHECK(live.checks.mismatches == 0);
  CHECK(live.checks.first_mismatch == "");
  CHECK(live.checks.undelivered > 0);
  CHECK(fresh == static_cast<std::uint64_t>(replays));
  CHECK(misnamed == 0);
  CHECK(ok > static_cast<std::uint64_t>(replays));
  CHECK(failed > 0);
  CHECK(timed_out > 0);
}
