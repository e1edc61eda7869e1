// The live tier: real images, real reads, every row checked. On the cpu device unless the environment names another.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>

#include "platforms/error.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

constexpr std::uint32_t tokens = LiveTier::tokens;
using Live = LiveTier;

// Where every access to memory is watched, steps take ten times as long, and what races does so in the first of them.
#if defined(__SANITIZE_THREAD__)
constexpr int steps_of_each = 24;
#else
constexpr int steps_of_each = 60;
#endif

}  // namespace

TEST_CASE("every placement serves every row bit for bit", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto one = stage_small(folder, spec, 1), four = stage_small(folder, spec, 4);
  const auto device = open_test_device();
  const std::vector<std::vector<LayerSetup>> placements = {
      {on("dram", {}, 0), on("dram", {}, 0)},
      {on("dram", {}, 0), on("uring", one, 0)},
      {on("hbm", {}, 0), on("uring", one, 300)},
      {on("uring", one, 0), on("uring", one, 0)},
      {on("uring", one, 500, 2), on("uring", one, 50, 3)},
      {on("uring", four, 300, 2), on("pread", four, 7)},
      {on("pread", one, 100'000), on("pread", one, 1, 2)},
      {on("buffered", one, 300, 2), on("mmap", four, 40)},
  };
  for (const bool layer_first : {true, false})
    for (const bool dedup : {true, false})
      for (const auto& placement : placements) {
        TierOptions options;
        options.first_layer_first = layer_first;
        options.row_dedup = options.page_dedup = dedup;
        options.output = layer_first == dedup ? OutputFormat::bf16 : OutputFormat::fp32;
        Live live(*device, spec, placement, options);
        std::uint64_t hits = 0, pages = 0;
        for (int s = 0; s < steps_of_each; ++s) {
          live.draw();
          if (s == 20) {
            std::vector<std::uint32_t> prefill(900 * static_cast<std::size_t>(spec.max_ngram));
            for (auto& id : prefill) id = static_cast<std::uint32_t>(live.random() % 40);
            live.tier->advance(prefill);
            live.tier->fill_advanced();
          }
          for (const auto& layer : live.step().layers) {
            REQUIRE(layer.status == StepStatus::ok);
            REQUIRE(layer.opened >= 0);
            hits += layer.counts.hits;
            pages += layer.counts.pages;
          }
        }
        REQUIRE(live.checks.checked == steps_of_each * 2 * tokens * spec.rows_per_token());
        REQUIRE(live.checks.mismatches == 0);
        REQUIRE(live.checks.undelivered == 0);
        REQUIRE(live.checks.pages == pages);
        if (placement[0].cache_rows > 0) REQUIRE(hits > 0);
        if (!is_resident_source(placement[0].source)) REQUIRE(pages > 0);
      }
}

TEST_CASE("the ranks of either shard map together own each lookup once", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    std::uint64_t owned = 0, lookups = 0;
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      StageOptions stage;
      stage.disks = {folder.file("rank" + std::to_string(rank) + to_string(map))};
      stage.ranks = 2;
      stage.only_ranks = {rank};
      stage.shard_map = map;
      stage_image(spec, stage);
      TierOptions options;
      options.shard_map = map;
      options.ranks = 2;
      options.rank = rank;
      Live live(*device, spec, {on("uring", stage.disks, 100), on("uring", stage.disks, 0)}, options);
      for (int s = 0; s < 20; ++s) {
        live.draw();
        for (const auto& layer : live.step().layers) {
          owned += layer.counts.owned;
          if (rank == 0) lookups += layer.counts.lookups;
        }
      }
      REQUIRE(live.checks.mismatches == 0);
    }
    REQUIRE(owned == lookups);
  }
}

TEST_CASE("a scaled image folds pages; rows and directory keep the full geometry", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1, 1, 0, (1 << 20) + 2 * 64 * 4096);
  const ImageHeader header = read_image_header(image);
  const auto device = open_test_device();
  TierOptions options;
  for (const auto& layer : spec.layers) options.folds.push_back({header.segment(layer.layer, 0).stored_pages});
  REQUIRE(options.folds[0].stored_pages < 100);
  Live live(*device, spec, {on("uring", image, 200), on("dram", {}, 0)}, options);
  for (int s = 0; s < 50; ++s) {
    live.draw();
    live.step();
  }
  REQUIRE(live.checks.mismatches == 0);
}

namespace {

// Overwrites every page of a staged image but its header.
void spoil(const std::string& file, const std::vector<char>& with) {
  const int fd = ::open(file.c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  const auto bytes = std::filesystem::file_size(file);
  for (std::uintmax_t at = 1 << 20; at < bytes; at += with.size())
    REQUIRE(::pwrite(fd, with.data(), std::min<std::uintmax_t>(with.size(), bytes - at), static_cast<off_t>(at)) > 0);
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

TEST_CASE("bad pages open their gates with an error, as zeros, named; the next healthy step is right", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const auto image = stage_small(folder, spec, 1);
  const std::string saved = folder.file("saved");
  std::filesystem::copy_file(image[0], saved);
  for (const std::string source : {"uring", "pread", "buffered", "mmap"})
    for (const std::string& fault : {std::string("zero"), std::string("cut"), std::string("foreign")}) {
      INFO(source << " " << fault);
      Live live(*device, spec, {on(source, image, 300), on("dram", {}, 0)});
      for (int s = 0; s < 5; ++s) {
        live.draw();
        live.step();
      }
      REQUIRE(live.checks.mismatches == 0);
      if (fault == "zero") spoil(image[0], std::vector<char>(4096, 0));
      if (fault == "foreign") spoil(image[0], std::vector<char>(4096, 0x5A));
      if (fault == "cut") std::filesystem::resize_file(image[0], 1 << 20);
      live.draw();
      for (auto& id : live.context) id = static_cast<std::uint32_t>(100 + live.random() % 300);  // new rows: misses
      const StepReport& bad = live.step();
      REQUIRE(bad.layers[0].status == StepStatus::read_error);
      REQUIRE(bad.layers[1].status == StepStatus::ok);
      REQUIRE(bad.layers[0].fault.find(image[0]) != std::string::npos);
      REQUIRE(bad.layers[0].fault.find("page ") != std::string::npos);
      REQUIRE(live.checks.mismatches == 0);
      REQUIRE(live.checks.undelivered > 0);
      std::filesystem::copy_file(saved, image[0], std::filesystem::copy_options::overwrite_existing);
      const auto undelivered = live.checks.undelivered;
      const StepReport& good = live.step();  // the same tokens again
      REQUIRE(good.layers[0].status == StepStatus::ok);
      REQUIRE(live.checks.mismatches == 0);
      REQUIRE(live.checks.undelivered == undelivered);
    }
}

TEST_CASE("a worker that looks for its indices finds them early and late, and no replay calls the host", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const auto image = stage_small(folder, spec, 1);
  // Found while it looks; given up at once and found by looking now and then; the device's own choice.
  for (const Nanos poll : {Nanos{50'000'000}, Nanos{1}, Nanos{-1}}) {
    TierOptions options;
    options.poll_indices = poll;
    Live live(*device, spec, {on("uring", image, 500), on("uring", image, 0)}, options);
    REQUIRE(live.graph->host_functions() == (device->facts().gate == "host-node" ? spec.layers.size() : 0));
    for (int s = 0; s < 60; ++s) {
      live.draw();
      live.tier->begin_step(live.context, live.active);
      // Launched at once, or long after the step was begun.
      if (s % 3 == 1) monotonic_clock().sleep_until(monotonic_clock().now() + 300'000);
      if (s % 20 == 2) monotonic_clock().sleep_until(monotonic_clock().now() + 5'000'000);
      live.graph->launch(*live.main);
      live.main->synchronize();
      for (const auto& layer : live.tier->finish_step().layers) REQUIRE(layer.status == StepStatus::ok);
      live.tier->check(live.checks);
    }
    REQUIRE(live.checks.mismatches == 0);
    REQUIRE(live.checks.checked > 1000);
    // Begun, and never launched.
    live.tier->begin_step(live.context, live.active);
  }
}

TEST_CASE("a step whose row indices do not come is given up, and the next is whole", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const auto image = stage_small(folder, spec, 1);
  for (const Nanos poll : {Nanos{0}, Nanos{1'000}}) {
    if (poll == 0 && !device->posts_ring()) continue;
    TierOptions options;
    options.poll_indices = poll;
    options.watchdog = 30'000'000;
    Live live(*device, spec, {on("uring", image, 500), on("uring", image, 0)}, options);
    live.draw();
    live.tier->begin_step(live.context, live.active);  // its launch is late: the post cannot come
    for (const auto& layer : live.tier->finish_step().layers) {
      REQUIRE(layer.status == StepStatus::timed_out);
      REQUIRE(layer.fault.find("row indices not in after 30 ms") != std::string::npos);
      REQUIRE(layer.counts.pages == 0);
    }
    // The overdue launch runs through open gates, and delivers zeros.
    live.graph->launch(*live.main);
    live.main->synchronize();
    for (int s = 0; s < 5; ++s) {
      live.draw();
      for (const auto& layer : live.step().layers)
        if (layer.status == StepStatus::timed_out) WARN("a busy machine: " << layer.fault);
    }
    REQUIRE(live.checks.mismatches == 0);
  }
}

TEST_CASE("steps allocate nothing in the steady state", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const auto image = stage_small(folder, spec, 1);
  for (const std::string source : {"uring", "pread", "buffered", "mmap"}) {
    TierOptions options;
    options.poll_indices = source == "uring" ? -1 : 100'000;
    Live live(*device, spec, {on(source, image, 500, 2), on(source, image, 0)}, options);
    for (int s = 0; s < 50; ++s) {
      live.draw();
      live.step();
    }
    std::uint64_t pages = 0;
    std::size_t allocated = 0;
    for (int s = 0; s < 200; ++s) {
      live.draw();
      const std::size_t before = allocation_count();
      live.tier->begin_step(live.context, live.active);
      live.graph->launch(*live.main);
      live.main->synchronize();
      const StepReport& report = live.tier->finish_step();
      allocated += allocation_count() - before;
      for (const auto& layer : report.layers) pages += layer.counts.pages;
    }
    REQUIRE(pages > 1000);
    if (device->facts().backend == "cpu") REQUIRE(allocated == 0);  // a GPU runtime allocates as it likes
  }
}

TEST_CASE("images of other settings are refused in words", "[live]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_test_device();
  const auto image = stage_small(folder, spec, 1);
  const auto make = [&](TierOptions options, const std::vector<std::string>& disks) {
    Live live(*device, spec, {on("uring", disks, 0), on("dram", {}, 0)}, options);
  };
  TierOptions other_seed;
  other_seed.seed = 2;
  REQUIRE_THROWS_AS(make(other_seed, image), UsageError);
  TierOptions other_shard;
  other_shard.ranks = 2;
  REQUIRE_THROWS_AS(make(other_shard, image), UsageError);
  REQUIRE_THROWS(make({}, {folder.file("none")}));
  REQUIRE_THROWS_AS(Live(*device, spec, {on("no-such-source", image, 0), on("dram", {}, 0)}), UsageError);
}
