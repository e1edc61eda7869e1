// Prefill chunks: the plan against what it must cover, and the live path with real reads, every row checked.
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tier/chunk.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

std::vector<std::uint32_t> draw_context(LiveTier& live, std::size_t tokens, std::uint32_t ids) {
  std::vector<std::uint32_t> context(tokens * static_cast<std::size_t>(live.spec.max_ngram));
  for (auto& id : context) id = static_cast<std::uint32_t>(live.random() % ids);
  return context;
}

// Distinct pages that the rows of a chunk lie on: what an uncached layer must read, and no more.
std::size_t distinct_pages(const LiveTier& live, std::size_t layer, const std::vector<std::uint32_t>& context) {
  const std::size_t tokens = context.size() / static_cast<std::size_t>(live.spec.max_ngram);
  std::vector<std::uint32_t> rows(tokens * live.spec.rows_per_token());
  make_hash(live.spec)->rows(layer, context.data(), tokens, rows.data());
  const std::uint32_t per_page = make_page_geometry(4096, live.spec.row_bytes).rows_per_page;
  std::set<std::uint32_t> pages;
  for (const auto row : rows) pages.insert(row / per_page);
  return pages.size();
}

}  // namespace

TEST_CASE("a chunk's lists and waves cover each lookup once and read each page once", "[prefill]") {
  std::mt19937_64 random(3);
  for (const std::uint64_t cache_rows : {0u, 20u, 3000u})
    for (const std::uint32_t buffers : {8u, 64u}) {
      constexpr std::uint32_t columns = 2, tokens = 300;
      LayerCoreOptions options;
      options.geometry = make_page_geometry(4096, 264);
      options.shard.rows = 4000;
      options.shard.first = {0, 3000};
      options.shard.last = {2000, 5000};  // rows of 2,000 to 3,000 are another rank's
      options.shard.local = {0, 2000};
      options.fold.stored_pages = options.geometry.pages(4000);
      options.cache_rows = cache_rows;
      options.max_lookups = 4 * columns;
      options.buffers = buffers;
      options.first_buffer = 7;
      LayerCore core(options);
      std::vector<Descriptor> descriptors(tokens * columns);
      std::vector<std::uint32_t> at(tokens * columns);
      ChunkPlan plan(tokens * columns, descriptors.data(), at.data());
      for (int chunk = 0; chunk < 20; ++chunk) {
        std::vector<std::uint32_t> rows;
        for (std::uint32_t t = 0; t < tokens; ++t) {
          rows.push_back(static_cast<std::uint32_t>(random() % 3000));
          rows.push_back(3000 + static_cast<std::uint32_t>(random() % (chunk < 10 ? 50 : 2000)));
        }
        core.plan_chunk(plan, rows);
        std::vector<int> delivered(rows.size(), 0);
        std::set<std::uint32_t> pages;
        const auto visit = [&](ChunkPlan::List list, const std::map<std::uint32_t, std::uint32_t>& page_in) {
          for (std::uint32_t i = list.first; i < list.last; ++i) {
            ++delivered[at[i]];
            const std::uint32_t row = rows[at[i]];
            const bool owned = at[i] % 2 == 1 || row < 2000;
            const Descriptor d = descriptors[i];
            REQUIRE((d.kind() == LookupKind::zero) == !owned);
            if (!owned) continue;
            const std::uint32_t local = at[i] % 2 == 1 ? row - 1000 : row;
            if (d.kind() == LookupKind::miss) {
              REQUIRE(page_in.at(d.buffer()) == local / 15);
              REQUIRE(d.record() == local % 15);
            } else {
              REQUIRE(d.kind() == LookupKind::hit);
              REQUIRE(core.directory()->row_of(d.slot()) == local);
            }
          }
        };
        visit(plan.ready(), {});
        std::map<std::uint32_t, std::uint32_t> before;
        for (std::size_t w = 0; w < plan.waves(); ++w) {
          REQUIRE(plan.reads(w).size() <= buffers / 2);
          std::map<std::uint32_t, std::uint32_t> page_in;
          for (const PageRead& read : plan.reads(w)) {
            REQUIRE(pages.insert(static_cast<std::uint32_t>(read.page)).second);
            REQUIRE(page_in.emplace(read.buffer, static_cast<std::uint32_t>(read.page)).second);
            REQUIRE(!before.contains(read.buffer));
            REQUIRE(read.buffer >= 7);
            REQUIRE(read.buffer < 7 + buffers);
          }
          visit(plan.list(w), page_in);
          REQUIRE(core.on_wave(plan, w, std::vector<PageFault>(plan.reads(w).size(), PageFault::none)) == StepStatus::ok);
          before = page_in;
        }
        for (const int times : delivered) REQUIRE(times == 1);
        REQUIRE(plan.counts().pages == pages.size());
        REQUIRE(plan.counts().owned == plan.counts().hits + plan.counts().reused + plan.counts().misses);
        core.settle_chunk(plan);
        if (cache_rows == 3000 && chunk % 10 > 2) REQUIRE(plan.counts().hits > 0);
      }
    }
}

TEST_CASE("prefill delivers every row bit for bit, each page once, between decode steps", "[prefill]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto one = stage_small(folder, spec, 1), two = stage_small(folder, spec, 2);
  const auto device = open_test_device();
  const std::vector<std::vector<LayerSetup>> placements = {
      {on("dram", {}, 0), on("uring", one, 0)},           {on("uring", one, 0, 2), on("hbm", {}, 0)},
      {on("uring", one, 0, 2), on("uring", one, 0, 2)},   {on("uring", two, 400), on("pread", two, 9)},
      {on("pread", one, 100'000), on("uring", one, 100)},
  };
  for (const auto& placement : placements) {
    TierOptions options;
    options.prefill_tokens = 700;
    LiveTier live(*device, spec, placement, options);
    CheckReport checks;
    std::uint32_t most_waves = 0;
    for (int round = 0; round < 12; ++round) {
      const auto context = draw_context(live, round % 3 == 0 ? 1 : 700, 60);
      const PrefillReport& report = live.tier->prefill(*live.main, context, &checks);
      REQUIRE(report.total > 0);
      for (std::size_t l = 0; l < 2; ++l) {
        const PrefillLayerReport& layer = report.layers[l];
        REQUIRE(layer.status == StepStatus::ok);
        REQUIRE(layer.total >= layer.read);
        most_waves = std::max(most_waves, layer.waves);
        if (!is_resident_source(placement[l].source) && placement[l].cache_rows == 0)
          REQUIRE(layer.counts.pages == distinct_pages(live, l, context));
        if (placement[l].cache_rows == 100'000 && round > 8) REQUIRE(layer.counts.hits > layer.counts.misses);
      }
      for (int s = 0; s < 3; ++s) {
        live.draw();
        for (const auto& layer : live.step().layers) REQUIRE(layer.status == StepStatus::ok);
      }
    }
    REQUIRE(checks.checked == 2 * spec.rows_per_token() * (8 * 700 + 4));
    REQUIRE(checks.mismatches == 0);
    REQUIRE(checks.undelivered == 0);
    REQUIRE(live.checks.mismatches == 0);
    REQUIRE(most_waves > 1);
  }
}

TEST_CASE("a prefill whose pages are bad delivers zeros and says so; the next one is right", "[prefill]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_test_device();
  const std::string saved = folder.file("saved");
  std::filesystem::copy_file(image[0], saved);
  TierOptions options;
  options.prefill_tokens = 300;
  LiveTier live(*device, spec, {on("uring", image, 200), on("dram", {}, 0)}, options);
  CheckReport checks;
  std::filesystem::resize_file(image[0], (1 << 20) + 4096 * 20);
  const auto context = draw_context(live, 300, 500);
  const PrefillReport& bad = live.tier->prefill(*live.main, context, &checks);
  REQUIRE(bad.layers[0].status == StepStatus::read_error);
  REQUIRE(bad.layers[0].counts.failed > 0);
  REQUIRE(bad.layers[0].counts.failed < bad.layers[0].counts.owned);
  REQUIRE(bad.layers[0].fault.find(image[0]) != std::string::npos);
  REQUIRE(bad.layers[1].status == StepStatus::ok);
  REQUIRE(checks.mismatches == 0);
  REQUIRE(checks.undelivered == bad.layers[0].counts.failed);
  std::filesystem::copy_file(saved, image[0], std::filesystem::copy_options::overwrite_existing);
  checks = {};
  REQUIRE(live.tier->prefill(*live.main, context, &checks).layers[0].status == StepStatus::ok);
  REQUIRE(checks.mismatches == 0);
  REQUIRE(checks.undelivered == 0);
}

TEST_CASE("a late prefill wave is given up, its buffers come back, nothing stale is delivered", "[prefill]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  const auto device = open_test_device();
  TierOptions options;
  options.prefill_tokens = 300;
  options.watchdog = 1;  // nanosecond: no disk is that fast
  LiveTier live(*device, spec, {on("pread", image, 200), on("dram", {}, 0)}, options);
  CheckReport checks;
  int late = 0;
  for (int round = 0; round < 50; ++round) {
    const StepStatus status = live.tier->prefill(*live.main, draw_context(live, 300, 500), &checks).layers[0].status;
    late += status == StepStatus::timed_out;
  }
  REQUIRE(late > 0);
  REQUIRE(checks.mismatches == 0);
  REQUIRE(checks.undelivered > 0);
}

TEST_CASE("a chunk that is too large is refused", "[prefill]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  TierOptions options;
  options.prefill_tokens = 10;
  LiveTier live(*device, spec, {on("dram", {}, 0), on("dram", {}, 0)}, options);
  REQUIRE_THROWS_AS(live.tier->prefill(*live.main, draw_context(live, 11, 9)), UsageError);
  LiveTier without(*device, spec, {on("dram", {}, 0), on("dram", {}, 0)});
  REQUIRE_THROWS_AS(without.tier->prefill(*without.main, draw_context(without, 1, 9)), UsageError);
}
