// A live tier that skips rows never seen: they are zeros, unread and counted; all others are as ever.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tier/seen_set.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("rows never seen are zeros without a read, in steps, prefill and advances", "[live_skip]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_device("cpu");
  const auto hash = make_hash(spec);
  const std::size_t columns = spec.rows_per_token();

  // Seen: what tokens below 25 ask for, of the 40 that the steps draw from.
  std::vector<std::uint32_t> ids(3000), context(ids.size() * static_cast<std::size_t>(spec.max_ngram));
  std::mt19937_64 random(2);
  for (auto& id : ids) id = static_cast<std::uint32_t>(random() % 25);
  gather_context(spec, ids, 0, ids.size(), context.data());
  SeenSetBuilder builder(spec, ShardMap::contiguous, 1);
  builder.add(context);
  builder.write(folder.file("seen"), "tokens below 25");

  TierOptions options;
  options.skip_unseen = SeenSet::load(folder.file("seen"), spec, ShardMap::contiguous, 1, 0);
  options.prefill_tokens = 64;
  LiveTier live(*device, spec, {on("pread", image, 200), on("dram", {}, 0)}, options);
  std::vector<std::uint32_t> rows(LiveTier::tokens * columns);
  std::uint64_t skipped = 0, hits = 0;
  for (int s = 0; s < 60; ++s) {
    live.draw();
    if (s % 10 == 3) {
      std::vector<std::uint32_t> prefill(64 * static_cast<std::size_t>(spec.max_ngram));
      for (auto& id : prefill) id = static_cast<std::uint32_t>(live.random() % 40);
      const PrefillReport& chunk = live.tier->prefill(*live.main, prefill, &live.checks);
      REQUIRE(chunk.layers[0].counts.skipped > 0);
      REQUIRE(chunk.layers[1].counts.skipped == 0);
      live.tier->advance(prefill);
      live.tier->fill_advanced();
    }
    const StepReport& report = live.step();
    std::uint32_t unseen = 0;
    hash->rows(0, live.context.data(), LiveTier::tokens, rows.data());
    for (std::size_t i = 0; i < rows.size(); ++i)
      unseen += live.active[i / columns] && !options.skip_unseen->seen(0, rows[i]);
    const LayerCounts& counts = report.layers[0].counts;
    REQUIRE(report.layers[0].status == StepStatus::ok);
    REQUIRE(counts.skipped == unseen);
    REQUIRE(counts.skipped + counts.hits + counts.reused + counts.misses == counts.owned);
    REQUIRE(report.layers[1].counts.skipped == 0);  // in DRAM: nothing is skipped
    skipped += counts.skipped;
    hits += counts.hits;
  }
  REQUIRE(live.checks.mismatches == 0);
  REQUIRE(live.checks.undelivered == 0);
  REQUIRE(live.checks.skipped > skipped);  // prefill's, too
  REQUIRE(skipped > 100);
  REQUIRE(hits > 100);
}
