// Caches resized while a tier runs: every row stays right, whatever its slot went through.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tier/directory.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

LayerSetup resizable(const std::string& policy, const std::vector<std::string>& disks, std::uint64_t rows,
                     std::uint64_t reserved) {
  LayerSetup setup = on("pread", disks, rows);
  setup.policy = policy;
  setup.cache_rows_reserved = reserved;
  return setup;
}

}  // namespace

TEST_CASE("every hit after a resize is bit exact", "[live_resize]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_device("cpu");
  for (const std::string& policy : directory_policies()) {
    INFO(policy);
    LiveTier live(*device, spec, {resizable(policy, image, 60, 300), resizable(policy, image, 300, 300)});
    std::mt19937_64 random(3);
    std::vector<std::uint32_t> hot;
    for (std::uint32_t r = 0; r < 300; ++r) hot.push_back(r * 7);
    if (policy == "static")
      for (std::size_t l = 0; l < 2; ++l) live.tier->hold(l, hot);
    std::uint64_t hits = 0;
    for (int s = 0; s < 100; ++s) {
      if (s % 5 == 4) {
        // The budget moves from one layer to the other, as a control file would have it.
        const std::uint64_t first = s % 25 == 24 ? 0 : random() % 301;
        live.tier->resize_cache(0, first);
        live.tier->resize_cache(1, 300 - first);
        REQUIRE(live.tier->core(0).directory()->slots() == first);
      }
      if (s % 30 == 20) {
        std::vector<std::uint32_t> prefill(400 * static_cast<std::size_t>(spec.max_ngram));
        for (auto& id : prefill) id = static_cast<std::uint32_t>(live.random() % 40);
        live.tier->advance(prefill);
        live.tier->fill_advanced();
      }
      live.draw();
      for (const auto& layer : live.step().layers) {
        REQUIRE(layer.status == StepStatus::ok);
        hits += layer.counts.hits;
      }
      REQUIRE(live.checks.mismatches == 0);
    }
    REQUIRE(hits > 0);
    REQUIRE(live.checks.undelivered == 0);
    REQUIRE_THROWS_AS(live.tier->resize_cache(0, 301), UsageError);
  }
}

TEST_CASE("rows held by a static cache are hits from the first step on", "[live_resize]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_device("cpu");
  LiveTier live(*device, spec, {resizable("static", image, 100'000, 0), on("dram", {}, 0)});
  const std::uint64_t rows = live.tier->core(0).directory()->rows();
  std::vector<std::uint32_t> all(rows);
  for (std::uint32_t r = 0; r < rows; ++r) all[r] = r;
  live.tier->hold(0, all);
  live.tier->hold(1, all);  // in DRAM: nothing to do
  for (int s = 0; s < 10; ++s) {
    live.draw();
    const StepReport& report = live.step();
    REQUIRE(report.layers[0].counts.hits == report.layers[0].counts.owned);
    REQUIRE(report.layers[0].counts.pages == 0);
  }
  REQUIRE(live.checks.mismatches == 0);
  REQUIRE_THROWS_AS(live.tier->resize_cache(1, 5), UsageError);
}
