// The step core: plans, descriptors, failures, quarantine.
#include "tier/step.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// A table of 4 columns of 1,000 rows each; the rank owns the last two.
LayerCoreOptions small_layer(std::uint64_t cache_rows = 64, std::uint32_t tokens = 16) {
  LayerCoreOptions options;
  options.geometry = make_page_geometry(4096, 264);
  options.shard.ranks = 2;
  options.shard.rank = 1;
  options.shard.rows = 2000;
  options.shard.first = {0, 0, 2000, 3000};
  options.shard.last = {0, 0, 3000, 4000};
  options.shard.local = {0, 0, 0, 1000};
  options.fold.stored_pages = options.geometry.pages(2000);
  options.cache_rows = cache_rows;
  options.max_lookups = tokens * 4;
  options.first_buffer = 100;
  options.buffers = 2 * tokens * 2;
  return options;
}

std::vector<std::uint32_t> token(std::uint32_t c2, std::uint32_t c3) { return {5, 1005, 2000 + c2, 3000 + c3}; }

std::vector<std::uint32_t> tokens(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> list) {
  std::vector<std::uint32_t> rows;
  for (const auto& [a, b] : list) {
    const auto t = token(a, b);
    rows.insert(rows.end(), t.begin(), t.end());
  }
  return rows;
}

const std::vector<PageFault> fine(64, PageFault::none);

}  // namespace

TEST_CASE("a step's plan: owned lookups, one read per page, reuse of rows", "[step]") {
  LayerCore core(small_layer());
  // Rows 0 and 1 of column 2 share page 0; token 2 repeats token 0; column 3's local rows are 1000 and 1014 (pages 66 and
  // 67).
  core.on_indices(1, tokens({{0, 0}, {1, 14}, {0, 0}}), {});
  const LayerCounts& counts = core.counts();
  REQUIRE(counts.lookups == 12);
  REQUIRE(counts.owned == 6);
  REQUIRE(counts.misses == 4);
  REQUIRE(counts.reused == 2);
  REQUIRE(counts.pages == 3);
  REQUIRE(core.in_flight());
  const auto d = core.descriptors();
  REQUIRE(d.size() == 12);
  REQUIRE(d[0].kind() == LookupKind::zero);
  REQUIRE(d[2].kind() == LookupKind::miss);
  REQUIRE(d[2].record() == 0);
  REQUIRE(d[6].record() == 1);
  REQUIRE(d[6].buffer() == d[2].buffer());
  REQUIRE(d[10].buffer() == d[2].buffer());
  REQUIRE(d[10].slot() == no_slot);
  REQUIRE(d[3].record() == 1000 % 15);
  REQUIRE(core.reads()[0].page == 0);
  REQUIRE(core.reads()[0].buffer >= 100);
  const auto release = core.on_pages(1, fine);
  REQUIRE(release.publish);
  REQUIRE(release.status == StepStatus::ok);
  core.settle();
  core.on_indices(2, tokens({{1, 14}, {2, 0}}), {});
  REQUIRE(core.counts().hits == 3);
  REQUIRE(core.counts().misses == 1);
  REQUIRE(core.counts().pages == 1);
  core.on_pages(2, fine);
  core.settle();
  REQUIRE(core.counts().owned_by_column == std::vector<std::uint32_t>{0, 0, 2, 2});
  REQUIRE(core.counts().hits_by_column == std::vector<std::uint32_t>{0, 0, 1, 2});
}

TEST_CASE("masked tokens ask for nothing", "[step]") {
  LayerCore core(small_layer());
  const std::vector<std::uint8_t> active{0, 1};
  core.on_indices(1, tokens({{0, 0}, {20, 20}}), active);
  REQUIRE(core.counts().lookups == 4);
  REQUIRE(core.counts().owned == 2);
  for (int i = 0; i < 4; ++i) REQUIRE(core.descriptors()[static_cast<std::size_t>(i)].kind() == LookupKind::zero);
}

TEST_CASE("the dedup switches", "[step]") {
  auto options = small_layer();
  options.page_dedup = false;
  LayerCore pages(options);
  pages.on_indices(1, tokens({{0, 0}, {1, 1}, {0, 0}}), {});
  REQUIRE(pages.counts().pages == 4);
  options.row_dedup = false;
  LayerCore rows(options);
  rows.on_indices(1, tokens({{0, 0}, {1, 1}, {0, 0}}), {});
  REQUIRE(rows.counts().pages == 6);
  REQUIRE(rows.counts().reused == 0);
  std::set<std::uint32_t> buffers;
  for (const auto& read : rows.reads()) REQUIRE(buffers.insert(read.buffer).second);
}

TEST_CASE("lookups of a failed page become zeros and its rows stay out of the cache", "[step]") {
  LayerCore core(small_layer());
  core.on_indices(1, tokens({{0, 0}, {1, 14}, {0, 0}}), {});
  auto faults = fine;
  faults[0] = PageFault::torn;  // page 0: rows 0 and 1 of column 2, asked for three times
  const auto release = core.on_pages(1, faults);
  REQUIRE(release.publish);
  REQUIRE(release.status == StepStatus::read_error);
  for (const std::size_t i : {2u, 6u, 10u}) REQUIRE(core.descriptors()[i].kind() == LookupKind::zero);
  REQUIRE(core.descriptors()[3].kind() == LookupKind::miss);
  REQUIRE(core.counts().failed == 3);
  core.settle();
  core.on_indices(2, tokens({{0, 0}, {1, 14}}), {});
  REQUIRE(core.counts().hits == 2);
  REQUIRE(core.counts().misses == 2);
}

TEST_CASE("an abandoned step: zeros now, late pages only end the quarantine", "[step]") {
  auto options = small_layer();
  options.buffers = 40;  // one step needs up to 32
  LayerCore core(options);
  const auto first =
      tokens({{0, 0}, {15, 15}, {30, 30}, {45, 45}, {60, 60}, {75, 75}, {90, 90}, {105, 105}, {120, 120}, {135, 135}});
  core.on_indices(1, first, {});
  const auto held = std::vector<PageRead>(core.reads().begin(), core.reads().end());
  const PageRead* span_of_source = core.reads().data();
  REQUIRE(core.abandon(1));
  REQUIRE_FALSE(core.abandon(1));
  for (const auto& d : core.descriptors()) REQUIRE(d.kind() == LookupKind::zero);
  REQUIRE(core.counts().failed == 20);
  core.settle();
  // The next step must not get a quarantined buffer.
  core.on_indices(2, tokens({{0, 0}, {300, 300}}), {});
  REQUIRE(core.counts().hits == 0);
  std::set<std::uint32_t> quarantined;
  for (const auto& read : held) quarantined.insert(read.buffer);
  for (const auto& read : core.reads()) REQUIRE_FALSE(quarantined.contains(read.buffer));
  // The source's span of the abandoned step is still what it was.
  for (std::size_t i = 0; i < held.size(); ++i) REQUIRE(span_of_source[i].buffer == held[i].buffer);
  // Late pages of step 1 publish nothing and change nothing of step 2.
  REQUIRE_FALSE(core.on_pages(1, fine).publish);
  REQUIRE(core.in_flight());
  REQUIRE(core.on_pages(2, fine).publish);
  core.settle();
  // All buffers are back: a full step can be planned.
  std::vector<std::uint32_t> full;
  for (std::uint32_t t = 0; t < 16; ++t) {
    const auto one = token(400 + 15 * t, 400 + 15 * t);
    full.insert(full.end(), one.begin(), one.end());
  }
  core.on_indices(3, full, {});
  REQUIRE(core.counts().failed == 0);
  REQUIRE(core.counts().pages >= 31);
}

TEST_CASE("pages of abandoned steps hold all buffers: zeros with a status of their own", "[step]") {
  auto options = small_layer();
  options.buffers = 32;
  LayerCore core(options);
  std::vector<std::uint32_t> full;
  for (std::uint32_t t = 0; t < 16; ++t) {
    const auto one = token(15 * t, 15 * t);
    full.insert(full.end(), one.begin(), one.end());
  }
  core.on_indices(1, full, {});
  const auto taken = core.counts().pages;
  core.abandon(1);
  core.settle();
  core.on_indices(2, full, {});
  REQUIRE(core.counts().pages == 32 - taken);
  REQUIRE(core.counts().failed > 0);
  if (core.in_flight()) {
    REQUIRE(core.on_pages(2, fine).status == StepStatus::no_buffers);
  }
  core.settle();
  core.on_pages(1, fine);
  core.on_indices(3, full, {});
  REQUIRE(core.counts().failed == 0);
}

TEST_CASE("a resident layer points into the host table, folded", "[step]") {
  auto options = small_layer();
  options.resident = true;
  options.buffers = 0;
  options.fold.stored_pages = 10;
  LayerCore core(options);
  core.on_indices(1, tokens({{151, 0}}), {});
  REQUIRE_FALSE(core.in_flight());
  REQUIRE(core.descriptors()[2].kind() == LookupKind::resident);
  REQUIRE(core.descriptors()[2].row() == 1);                           // row 151: page 10, record 1 -> page 0
  REQUIRE(core.descriptors()[3].row() == (1000 / 15 % 10) * 15 + 10);  // row 1000: page 66, record 10 -> page 6
}

TEST_CASE("advance leaves the directory as live steps do", "[step]") {
  std::mt19937_64 random(3);
  LayerCore live(small_layer(100)), advanced(small_layer(100));
  std::vector<std::uint32_t> filled;
  for (std::uint64_t epoch = 1; epoch <= 200; ++epoch) {
    std::vector<std::uint32_t> rows;
    for (int t = 0; t < 16; ++t) {
      const auto one = token(static_cast<std::uint32_t>(random() % 80), static_cast<std::uint32_t>(random() % 80));
      rows.insert(rows.end(), one.begin(), one.end());
    }
    live.on_indices(epoch, rows, {});
    if (live.in_flight()) live.on_pages(epoch, fine);
    live.settle();
    filled.clear();
    advanced.advance(rows, filled);
    for (std::uint32_t s = 0; s < 100; ++s) REQUIRE(live.directory()->row_of(s) == advanced.directory()->row_of(s));
  }
}

TEST_CASE("static: held rows are hits, all others unfilled misses; a smaller cache keeps the hottest", "[step]") {
  auto options = small_layer(3);
  options.policy = "static";
  LayerCore core(options);
  std::vector<std::uint32_t> filled;
  core.hold(std::vector<std::uint32_t>{7, 1007, 3, 4}, filled);  // local rows: 7 of column 2, 7 of column 3, 3, 4
  REQUIRE(filled == std::vector<std::uint32_t>{0, 1, 2});
  const auto step = [&](std::uint64_t epoch) {
    core.on_indices(epoch, tokens({{7, 7}, {3, 4}}), {});
    core.on_pages(epoch, fine);
    core.settle();
  };
  step(1);
  REQUIRE(core.counts().hits == 3);
  REQUIRE(core.counts().misses == 1);
  REQUIRE(core.counts().unfilled == 1);
  core.resize_cache(1);
  step(2);
  REQUIRE(core.counts().hits == 1);
  REQUIRE(core.descriptors()[2].kind() == LookupKind::hit);
  REQUIRE_THROWS_AS(core.resize_cache(4), UsageError);
}

TEST_CASE("a pool that cannot hold a step is refused", "[step]") {
  auto options = small_layer();
  options.buffers = 31;
  REQUIRE_THROWS_AS(LayerCore(options), UsageError);
}
