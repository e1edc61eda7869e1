// Bursts on a real image: every page read and checked, times in order, faults named.
#include "iobench/load.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>

#include "iobench/fio_job.hpp"
#include "iobench/measure.hpp"
#include "iobench/table_pages.hpp"
#include "platforms/error.hpp"
#include "reports/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/small_table.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

const std::vector<LayerPages> both{{1, 40}, {3, 25}};

LoadOptions on_image(const std::vector<std::vector<std::string>>& disks) {
  LoadOptions options;
  for (const auto& image : disks) options.images.push_back(read_image_header(image));
  return options;
}

}  // namespace

TEST_CASE("a batch reads what was asked for and times it in order", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto one = stage_small(folder, spec, 1), two = stage_small(folder, spec, 2);
  for (const auto& disks : {one, two})
    for (const SubmitOrder order : {SubmitOrder::layer_first, SubmitOrder::interleaved})
      for (const std::uint32_t ranks : {1u, 3u})
        for (const std::string source : {"uring", "pread"}) {
          LoadOptions options = on_image({disks});
          options.order = order;
          options.ranks = ranks;
          options.source = source;
          options.settings.threads = 2;
          options.settings.verify_checksum = true;
          Load load(options, both);
          for (std::uint64_t b = 0; b < 5; ++b) {
            const BatchTime time = load.run(both, b);
            REQUIRE(time.layers.size() == 2);
            for (const LayerTime& layer : time.layers) {
              REQUIRE(layer.submit > 0);
              REQUIRE(layer.read > 0);
              REQUIRE(layer.arrival > layer.submit);
              REQUIRE(layer.arrival >= layer.read);
              REQUIRE(time.begin + layer.arrival <= time.end);
            }
          }
          // A layer may have nothing to read.
          REQUIRE(load.run({{1, 0}, {3, 5}}, 9).layers[0].arrival == 0);
        }
}

TEST_CASE("batches back to back: in order, none beside another, as many as are wanted", "[load]") {
  const ScratchFolder folder;
  const auto disks = stage_small(folder, small_table(folder), 2);
  for (const std::string source : {"uring", "pread"})
    for (const SubmitOrder order : {SubmitOrder::layer_first, SubmitOrder::interleaved})
      for (const std::vector<std::string>& wrappers :
           {std::vector<std::string>{}, {"shared:tenants=2"}, {"delayed:latency_us=200"}}) {
        LoadOptions options = on_image({disks});
        options.source = source;
        options.order = order;
        options.ranks = 2;
        options.wrappers = wrappers;
        options.settings.verify_checksum = true;
        Load load(options, both);
        for (const std::uint32_t count : {0u, 1u, 30u}) {
          Nanos last = 0;
          std::uint32_t times = 0;
          REQUIRE(load.run_back_to_back(both, 5, count, [&](const BatchTime& time) {
            REQUIRE(time.begin >= last);
            REQUIRE(time.end > time.begin);
            last = time.end;
            ++times;
            return true;
          }) == count);
          REQUIRE(times == count);
        }
        for (const std::uint32_t wanted : {1u, 9u}) {
          std::uint32_t times = 0;
          REQUIRE(load.run_back_to_back(both, 0, 1000, [&](const BatchTime&) { return ++times < wanted; }) == wanted);
          REQUIRE(times == wanted);
        }
        // A layer may have nothing to read, or all of them.
        REQUIRE(load.run_back_to_back({{1, 0}, {3, 5}}, 0, 20, [](const BatchTime&) { return true; }) == 20);
        REQUIRE(load.run_back_to_back({{1, 0}, {3, 0}}, 0, 20, [](const BatchTime&) { return true; }) == 20);
        load.run(both, 0);
      }
}

TEST_CASE("a page that fails ends batches back to back, and the load goes on after it", "[load]") {
  const ScratchFolder folder;
  LoadOptions options = on_image({stage_small(folder, small_table(folder), 1)});
  options.wrappers = {"faulty:class=eio,nth=400"};
  Load load(options, both);
  std::uint32_t kept = 0;
  const auto count = [&](const BatchTime&) { return ++kept < 1000; };
  CHECK_THROWS_WITH(load.run_back_to_back(both, 0, 1000, count), contains_text("page "));
  CHECK(kept == 6);  // the 400th page is of the seventh batch of 65
  CHECK_THROWS_AS(load.run_back_to_back({{1, 100'000}, {3, 1}}, 0, 5, count), UsageError);
}

TEST_CASE("offsets are those of the image, and equal for equal seeds", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto disks = stage_small(folder, spec, 2);
  const LoadOptions options = on_image({disks});
  const Load load(options, both);
  const auto offsets = load.offsets(both, 0, 0);
  REQUIRE(offsets.size() == 65);
  for (const auto& o : offsets) {
    const ImageSegment& segment = options.images[0].segment(o.layer, 0);
    REQUIRE(o.page < segment.stored_pages);
    REQUIRE(o.disk == disks[o.page % 2]);
    REQUIRE(o.offset == segment.base + o.page / 2 * 4096);
    REQUIRE(o.offset + 4096 <= std::filesystem::file_size(o.disk));
  }
  const Load again(options, both);
  for (std::size_t i = 0; i < offsets.size(); ++i) REQUIRE(again.offsets(both, 0, 0)[i].offset == offsets[i].offset);
}

TEST_CASE("a bad page ends the load, named; an unstamped device counts zero pages instead", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto disks = stage_small(folder, spec, 1);
  const LoadOptions options = on_image({disks});
  Load load(options, both);
  load.run(both, 0);
  const auto size = std::filesystem::file_size(disks[0]);
  std::filesystem::resize_file(disks[0], 1 << 20);
  std::filesystem::resize_file(disks[0], size);  // a hole where the pages were
  CHECK_THROWS_WITH(load.run(both, 1), contains_text(disks[0]));
  CHECK_THROWS_WITH(load.run(both, 1), contains_text("page "));

  LoadOptions raw;
  raw.images = {unstamped_image(disks, both, 4096, size)};
  raw.stamped = false;
  Load unstamped(raw, both);
  CHECK(unstamped.run(both, 0).zero_pages > 50);
  std::filesystem::resize_file(disks[0], 8192);
  CHECK_THROWS_AS(unstamped.run(both, 1), DeviceError);
}

TEST_CASE("measuring keeps whole rounds, means of rounds, and says what was not reached", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto disks = stage_small(folder, spec, 1);
  Load load(on_image({disks}), both);
  MeasureOptions options;
  options.batches = 20;
  options.rounds = 4;
  options.steady_tolerance = 1;
  const Measurement measured = measure(load, {both, {{1, 5}, {3, 5}}}, options);
  REQUIRE(measured.points.size() == 2);
  for (const PointSamples& point : measured.points) {
    CHECK(point.wall_us.size() == 20);
    CHECK(point.round_means(0).size() == 4);
    CHECK(point.start_s.size() == 20);
    CHECK(point.response_us[0].empty());
  }
  CHECK(measured.points[0].page_reads == 20 * 65);
  CHECK(measured.steady);
  CHECK(measured.unmet.empty());

  // As a prefill's: six times the pages, read once a round.
  const Measurement with_long = measure(load, {{{1, 4}, {3, 4}}, {{1, 24}, {3, 24}}}, options);
  CHECK(with_long.points[0].wall_us.size() == 20);
  CHECK(with_long.points[1].wall_us.size() == 4);
  CHECK(with_long.unmet.empty());

  options.max_seconds = 1e-6;
  const Measurement cut = measure(load, {both}, options);
  CHECK(cut.unmet.find("of 4 rounds") != std::string::npos);

  options.max_seconds = 60;
  options.batches = 8;
  options.period = 2'000'000;
  const Measurement paced = measure(load, {both}, options);
  REQUIRE(paced.points[0].response_us[0].size() == 8);
  for (std::size_t b = 1; b < 8; ++b) CHECK(paced.points[0].start_s[b] - paced.points[0].start_s[b - 1] > 0.0);
  // The warm-up took the first 2 starts, 2 ms apart; none comes before its time.
  CHECK(paced.points[0].start_s[7] >= 10 * 0.002 - 1e-6);

  int asked = 0;
  options.stop = [&] { return ++asked > 3; };
  CHECK(measure(load, {both}, options).interrupted);
}

TEST_CASE("the time of a delayed source is its delay", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  LoadOptions options = on_image({stage_small(folder, spec, 1)});
  options.wrappers = {"delayed:latency_us=20000,gb_per_s=0.01"};
  Load load(options, both);
  // 65 pages over a link of 10 MB/s behind 20 ms: 46.6 ms for the last, 36.4 ms for the last of layer 1. The disk's own time
  // is hidden unless it is longer. T counts from the first page's submission to the system, which a busy machine delays.
  const BatchTime time = load.run(both, 0);
  CHECK(static_cast<double>(time.layers[0].arrival) >= 36.38e6);
  CHECK(static_cast<double>(time.layers[1].arrival) >= 46.62e6);
  for (const LayerTime& layer : time.layers) CHECK((layer.read > 0 && layer.read <= layer.arrival));
}

TEST_CASE("a layer that the image does not hold, or too many pages, are refused", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto disks = stage_small(folder, spec, 1);
  CHECK_THROWS_AS(Load(on_image({disks}), {{2, 5}}), UsageError);
  Load load(on_image({disks}), {{1, 100'000}});
  CHECK_THROWS_AS(load.run({{1, 100'000}}, 0), UsageError);
  LoadOptions span = on_image({disks});
  span.span_pages = 10;
  Load few(span, both);
  CHECK_THROWS_AS(few.run(both, 0), UsageError);
  few.run({{1, 10}, {3, 10}}, 0);
}

TEST_CASE("pages of a table: lookups of the rank that reads most, or a misses file's", "[load]") {
  const TablePages pages = uncached_pages(load_table_spec("engram_v41"), ShardMap::contiguous, 4, 128);
  CHECK(pages.pages == std::vector<LayerPages>{{1, 768}, {14, 768}});
  const std::string misses = SLACKTIER_SOURCE_DIR "/tests/unit/reports/examples/misses.json";
  const TablePages from = pages_from_misses(misses, {1}, 0, 64);
  CHECK(from.pages.at(0).pages == 743);
  CHECK(pages_from_misses(misses, {1}, 0, 128).pages.at(0).pages == 1486);
  CHECK_THROWS_WITH(pages_from_misses(misses, {99}, 0, 64), contains_text("has no layer 99"));
}

TEST_CASE("the fio job reads the same bytes in the same batches", "[load]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto disks = stage_small(folder, spec, 1);
  const std::string job = fio_job(on_image({disks}), both);
  for (const char* line : {"ioengine=io_uring\n", "direct=1\n", "bs=4096\n", "iodepth=65\n", "iodepth_batch=65\n",
                           "iodepth_batch_complete_min=65\n", "rw=randread\n"})
    CHECK(job.find(line) != std::string::npos);
  CHECK(job.find("filename=" + disks[0]) != std::string::npos);
}
