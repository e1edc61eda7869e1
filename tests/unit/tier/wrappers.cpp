// Wrappers around page sources: what they are told, what they do to times, load and pages, and that they leave rows right.
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tests/unit/tier/source_driver.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

namespace {

std::string refusal(const std::string& text) {
  try {
    check_wrapper(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

constexpr Nanos ms = 1'000'000;

}  // namespace

TEST_CASE("wrappers are read strictly; what is wrong is named", "[wrappers]") {
  for (const char* good : {"delayed:latency_us=15,gb_per_s=12.5", "delayed:link=100g-15us", "delayed:link=25g-120us",
                           "delayed:gb_per_s=1e2", "delayed:latency_us=0", "shared:tenants=2", "shared:seed=9,tenants=64",
                           "faulty:class=eio,probability=0.5", "faulty:class=late+torn,nth=3,late_ms=2.5"})
    CHECK(refusal(good) == "accepted");
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "use one of delayed, shared, faulty"},
      {"slow:latency_us=1", "unknown wrapper"},
      {"delayed", "at least one of latency_us and gb_per_s"},
      {"delayed:link=fast", "100g-15us or 25g-120us"},
      {"delayed:link=100g-15us,latency_us=1", "leave them out"},
      {"delayed:", "'' is no setting"},
      {"delayed:latency_us", "'latency_us' is no setting"},
      {"delayed:latency_us=", "'latency_us=' is no setting"},
      {"delayed:=5", "'=5' is no setting"},
      {"delayed:latency_us=1,", "'' is no setting"},
      {"delayed:latency_us=1,latency_us=2", "latency_us is said twice"},
      {"delayed:latency_us=fast", "latency_us=fast: a number from 0 to"},
      {"delayed:latency_us=-1", "a number from 0"},
      {"delayed:latency_us=nan", "a number from 0"},
      {"delayed:latency_us=inf", "a number from 0"},
      {"delayed:latency_us=5us", "a number from 0"},
      {"delayed:gb_per_s=0", "gb_per_s=0: a number from 0.001"},
      {"delayed:delay=5", "unknown setting 'delay'; known are latency_us, gb_per_s"},
      {"shared", "tenants is needed"},
      {"shared:tenants=1", "tenants=1: a whole number from 2 to 64"},
      {"shared:tenants=2.5", "a whole number"},
      {"shared:tenants=65", "a whole number"},
      {"faulty:class=eio", "either nth or probability"},
      {"faulty:class=eio,nth=1,probability=1", "either nth or probability"},
      {"faulty:nth=1", "class is needed"},
      {"faulty:class=eio+,nth=1", "class: '' is none"},
      {"faulty:class=lost,nth=1", "'lost' is none; use one or more, joined by +, of eio, short, late"},
      {"faulty:class=eio,nth=0", "nth=0: a whole number from 1"},
      {"faulty:class=eio,probability=1.5", "a number from 0 to 1"},
  };
  for (const auto& [text, part] : bad) {
    INFO(text);
    CHECK_THAT(refusal(text), contains_text(part));
    if (!text.empty()) CHECK_THAT(refusal(text), contains_text(text));
  }
  SourceBench bench;
  CHECK_THROWS_AS(bench.open("pread", {"delayed:latency_us=1", "delayed:x=1"}), UsageError);
  SourceOptions drop;
  drop.drop_cache = true;
  CHECK_THROWS_AS(bench.open("uring", {}, drop), UsageError);
}

TEST_CASE("wrapped sources serve every row bit for bit, on one disk and on four", "[wrappers]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto one = stage_small(folder, spec, 1), four = stage_small(folder, spec, 4);
  const auto device = open_device("cpu");
  const std::vector<std::vector<std::string>> stacks = {
      {"delayed:latency_us=300,gb_per_s=2"},
      {"shared:tenants=3"},
      {"faulty:class=eio,probability=0"},
      {"delayed:latency_us=50", "shared:tenants=2", "delayed:gb_per_s=5"},
      {"shared:tenants=2", "delayed:latency_us=50"},
  };
  for (const auto& stack : stacks)
    for (const std::string source : {"uring", "pread", "buffered", "mmap"}) {
      INFO(stack[0] << " " << source);
      Live live(*device, spec, {on(source, one, 200, 2, stack), on(source, four, 0, 1, stack)});
      for (int s = 0; s < 20; ++s) {
        live.draw();
        for (const auto& layer : live.step().layers) REQUIRE(layer.status == StepStatus::ok);
      }
      REQUIRE(live.checks.mismatches == 0);
      REQUIRE(live.checks.undelivered == 0);
    }
}

TEST_CASE("delayed: pages come no earlier than over the link, batches one after another", "[wrappers]") {
  SourceBench bench;
  const auto pages = first_pages(100);
  // 100 pages at 0.04096 GB/s: 10 ms on the link.
  const auto source = bench.open("pread", {"delayed:latency_us=5000,gb_per_s=0.04096"});
  {
    Reading first(*source, bench.segment(), pages);
    Reading second(*source, bench.segment(1), pages, 100);
    CHECK(first.took() >= 15 * ms);
    second.wait();
    CHECK(second.batch.completed - first.begun >= 25 * ms);
    for (const auto& read : first.reads) CHECK(bench.whole(bench.segment(), read));
    for (const auto& read : second.reads) CHECK(bench.whole(bench.segment(1), read));
  }
  const Nanos lone = Reading(*source, bench.segment(), {1}).took();
  CHECK(lone >= 5 * ms);
  CHECK(lone < 2'000 * ms);
  CHECK_THAT(source->describe(), contains_text("pread O_DIRECT") && contains_text("link of 5000 us and 0.04096 GB/s"));
  // A link faster than the disk changes nothing.
  const auto fast = bench.open("pread", {"delayed:latency_us=0.1"});
  CHECK(Reading(*fast, bench.segment(), pages).wait().done_calls == 1);
}

TEST_CASE("delayed: a source that ends delivers what is on the link", "[wrappers]") {
  SourceBench bench;
  auto source = bench.open("uring", {"delayed:latency_us=10000000"});
  Reading reading(*source, bench.segment(), {1, 2, 3});
  CHECK_FALSE(reading.done());
  const Nanos begin = monotonic_clock().now();
  source.reset();
  CHECK(reading.done());
  CHECK(monotonic_clock().now() - begin < 5'000 * ms);
  CHECK(bench.whole(bench.segment(), reading.reads[2]));
}

TEST_CASE("shared: others read as many other pages and touch no page of the pool", "[wrappers]") {
  for (const std::uint32_t disks : {1u, 3u}) {
    SourceBench bench(disks);
    std::memset(bench.pool.base(), 0x11, bench.pool.bytes());
    auto source = bench.open("uring", {"shared:tenants=4"});
    const auto pages = first_pages(60);
    Reading reading(*source, bench.segment(), pages, 10);
    reading.wait();
    CHECK_THAT(source->describe(), contains_text("shared with 3 other(s)"));
    // What the others still read is waited for at the end at the latest; here we want to see the count.
    for (int i = 0; i < 2000 && source->activity() != "180 pages read by others"; ++i)
      monotonic_clock().sleep_until(monotonic_clock().now() + ms);
    CHECK(source->activity() == "180 pages read by others");
    source.reset();
    CHECK(reading.done_calls == 1);
    for (const auto& read : reading.reads) CHECK(bench.whole(bench.segment(), read));
    for (std::uint32_t b = 0; b < bench.pool.buffers(); ++b)
      if (b < 10 || b >= 70) REQUIRE(bench.pool.page(b)[b % 4096] == std::byte{0x11});
  }
}

TEST_CASE("shared: a segment of one page a disk has no other pages to read", "[wrappers]") {
  SourceBench bench;
  ImageSegment one = bench.segment();
  one.stored_pages = 1;
  auto source = bench.open("pread", {"shared:tenants=2"});
  Reading(*source, one, {0}).wait();
  source.reset();
  ImageSegment two = bench.segment();
  two.stored_pages = 2;
  source = bench.open("pread", {"shared:tenants=2"});
  Reading(*source, two, {0, 1}).wait();
  for (int i = 0; i < 2000 && source->activity() != "2 pages read by others"; ++i)
    monotonic_clock().sleep_until(monotonic_clock().now() + ms);
  CHECK(source->activity() == "2 pages read by others");
}

TEST_CASE("faulty: the read that is named gets its fault, found by the source's own check", "[wrappers]") {
  const std::vector<std::pair<std::string, PageFault>> classes = {{"eio", PageFault::io},
                                                                  {"short", PageFault::cut},
                                                                  {"torn", PageFault::torn},
                                                                  {"stale", PageFault::stale},
                                                                  {"zero", PageFault::zero},
                                                                  {"foreign", PageFault::foreign},
                                                                  {"misplaced", PageFault::misplaced},
                                                                  {"late", PageFault::none}};
  REQUIRE(classes.size() == fault_classes().size());
  SourceBench bench(2);
  SourceOptions whole;
  whole.verify_checksum = true;
  whole.threads = 2;
  for (const std::string name : {"uring", "pread", "buffered", "mmap"})
    for (const auto& [fault, expected] : classes) {
      INFO(name << " " << fault);
      const auto source = bench.open(name, {"faulty:class=" + fault + ",nth=25,late_ms=400"}, whole);
      Reading before(*source, bench.segment(), first_pages(20));
      Reading hit(*source, bench.segment(1), first_pages(20), 20);
      for (std::size_t i = 0; i < 20; ++i) {
        CHECK(before.wait().faults[i] == PageFault::none);
        CHECK(hit.wait().faults[i] == (i == 4 ? expected : PageFault::none));
        CHECK(hit.errors[i] == (i == 4 && fault == "eio" ? EIO : 0));
        if (hit.faults[i] == PageFault::none) CHECK(bench.whole(bench.segment(1), hit.reads[i]));
      }
      if (fault == "late") CHECK(hit.took() >= 400 * ms);
      CHECK(source->activity().find("1 faulty reads: 1 " + fault) != std::string::npos);
      // Torn pages carry the right stamp: without the whole checksum nothing shows.
      if (fault == "torn") {
        const auto quick = bench.open(name, {"faulty:class=torn,nth=1"});
        CHECK(Reading(*quick, bench.segment(), {7}).wait().faults[0] == PageFault::none);
        CHECK_FALSE(bench.whole(bench.segment(), PageRead{7, 0}));
      }
    }
}

TEST_CASE("faulty: a seed hits the same reads whatever the threads do, and other wrappers are no hindrance", "[wrappers]") {
  SourceBench bench;
  const auto hit_by = [&](const std::string& source, int threads, const std::vector<std::string>& wrappers) {
    SourceOptions options;
    options.threads = threads;
    const auto opened = bench.open(source, wrappers, options);
    std::set<std::uint64_t> pages;
    for (int b = 0; b < 3; ++b) {
      Reading reading(*opened, bench.segment(), first_pages(100));
      reading.wait();
      for (std::size_t i = 0; i < 100; ++i)
        if (reading.faults[i] != PageFault::none) pages.insert(static_cast<std::uint64_t>(b) * 100 + i);
    }
    return pages;
  };
  const std::string faulty = "faulty:class=zero+eio+foreign,probability=0.2,seed=4";
  const auto hit = hit_by("pread", 1, {faulty});
  CHECK(hit.size() > 30);
  CHECK(hit.size() < 100);
  CHECK(hit_by("uring", 3, {faulty}) == hit);
  CHECK(hit_by("mmap", 2, {faulty, "delayed:latency_us=100"}) == hit);
  CHECK(hit_by("buffered", 2, {"delayed:latency_us=100", faulty}) == hit);
  CHECK(hit_by("uring", 1, {faulty, "shared:tenants=2"}) == hit);
  CHECK(hit_by("uring", 1, {"shared:tenants=2", faulty}) == hit);
  CHECK(hit_by("uring", 1, {"faulty:class=zero+eio+foreign,probability=0.2,seed=5"}) != hit);
  // One inside the other: both hit.
  const auto both = hit_by("uring", 2, {"faulty:class=stale,probability=0.2,seed=5", faulty});
  CHECK(both.size() > hit.size());
  for (const auto page : hit) CHECK(both.contains(page));
}
