// Page sources without a tier around them, and those of the page cache.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/source_driver.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

double cached_percent(const PageSource& source) {
  const std::string text = source.activity();
  const std::string begin = "page cache holds ";
  REQUIRE(text.rfind(begin, 0) == 0);
  return std::strtod(text.c_str() + begin.size(), nullptr);
}

}  // namespace

TEST_CASE("every source reads every page into its buffer, batches side by side", "[sources]") {
  for (const std::uint32_t disks : {1u, 4u}) {
    SourceBench bench(disks);
    for (const std::string& name : disk_source_names())
      for (const int threads : {1, 3}) {
        INFO(name << " " << disks << " " << threads);
        SourceOptions options;
        options.threads = threads;
        options.verify_checksum = true;
        const auto source = bench.open(name, {}, options);
        REQUIRE_FALSE(source->describe().empty());
        const std::uint64_t n = bench.segment().stored_pages;
        REQUIRE(n > 500);
        Reading all(*source, bench.segment(), first_pages(500));
        Reading other(*source, bench.segment(1), {n - 1, 0, n - 2, 5}, 600);
        for (Reading* reading : {&all, &other}) {
          reading->wait();
          REQUIRE(reading->done_calls == 1);
          for (const PageFault fault : reading->faults) REQUIRE(fault == PageFault::none);
          REQUIRE(reading->batch.submitted.load() >= reading->begun);
          REQUIRE(reading->batch.completed >= reading->batch.submitted.load());
        }
        for (const auto& read : all.reads) REQUIRE(bench.whole(bench.segment(), read));
        for (const auto& read : other.reads) REQUIRE(bench.whole(bench.segment(1), read));
      }
  }
}

TEST_CASE("a source that ends at once reads what was asked for before", "[sources]") {
  SourceBench bench(2);
  for (const std::string& name : disk_source_names())
    for (int i = 0; i < 20; ++i) {
      INFO(name);
      auto source = bench.open(name);
      Reading one(*source, bench.segment(), first_pages(40)), other(*source, bench.segment(1), first_pages(3), 40);
      source.reset();
      REQUIRE(one.done());
      REQUIRE(other.done());
      REQUIRE(bench.whole(bench.segment(), one.reads[39]));
      REQUIRE(bench.whole(bench.segment(1), other.reads[0]));
    }
}

TEST_CASE("unknown sources, and files that are not there, are named", "[sources]") {
  SourceBench bench;
  try {
    bench.open("tape");
    FAIL("opened");
  } catch (const UsageError& error) {
    CHECK_THAT(error.what(), contains_text("'tape'") && contains_text("uring, pread, buffered, mmap"));
  }
  std::filesystem::remove(bench.disks[0]);
  for (const std::string& name : disk_source_names()) {
    try {
      bench.open(name);
      FAIL("opened");
    } catch (const std::system_error& error) {
      CHECK(error.code().value() == ENOENT);
      CHECK_THAT(error.what(), contains_text(bench.disks[0]));
    }
  }
}

TEST_CASE("sources of the page cache: what it holds, and dropped at the start", "[sources]") {
  SourceBench bench(2);
  for (const std::string name : {"buffered", "mmap"})
    for (const bool hints : {true, false}) {
      INFO(name << " " << hints);
      SourceOptions options;
      options.drop_cache = true;
      options.hints = hints;
      const auto cold = bench.open(name, {}, options);
      CHECK_THAT(cold->describe(), contains_text("cache dropped at the start"));
      CHECK(cached_percent(*cold) < 5);
      Reading(*cold, bench.segment(), first_pages(500)).wait();
      // 500 of about 1,070 pages of both layers, behind headers of 256 pages on each of two disks.
      const double held = cached_percent(*cold);
      CHECK(held > 25);
      // Pages are read, and no more: readahead would fill the cache with neighbours and flatter the next batch.
      CHECK(held < 45);
      options.drop_cache = false;
      const auto warm = bench.open(name, {}, options);
      CHECK(cached_percent(*warm) >= held - 0.1);
    }
}

TEST_CASE("a file that is cut under its readers: each lost page is a fault, nothing else is", "[sources]") {
  for (const std::string& name : disk_source_names()) {
    INFO(name);
    SourceBench bench;
    const auto source = bench.open(name);
    // Within a page of the system, the rest of a mapped page reads as zeros: cut at a page's end.
    const auto cut = bench.segment().base + 100 * 4096;
    std::filesystem::resize_file(bench.disks[0], cut);
    Reading reading(*source, bench.segment(), first_pages(200));
    reading.wait();
    for (std::size_t i = 0; i < 200; ++i) {
      const PageFault fault = reading.faults[i];
      if (i < 100)
        REQUIRE(fault == PageFault::none);
      else
        REQUIRE((fault == PageFault::cut || fault == PageFault::io));
    }
    REQUIRE(reading.done_calls == 1);
  }
}
