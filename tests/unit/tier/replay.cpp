// The step cores of a live tier under faults, late pages and changes of every kind, taken again from their record: the same
// reads, descriptors, releases and counts.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tier/core_log.hpp"
#include "tier/directory.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

// Zeroes every eighth page of an image.
void spoil(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY);
  REQUIRE(fd >= 0);
  const std::vector<char> zeros(4096, 0);
  for (std::uintmax_t at = 1 << 20; at < std::filesystem::file_size(file); at += 8 * zeros.size())
    REQUIRE(::pwrite(fd, zeros.data(), zeros.size(), static_cast<off_t>(at)) > 0);
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

TEST_CASE("a replay of what a live tier did gives the same actions", "[replay]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto image = stage_small(folder, spec, 1);
  spoil(image[0]);
  const auto device = open_device("cpu");
  std::uint64_t given_up = 0, faulty = 0, hits = 0;
  for (const auto& policy : directory_policies()) {
    INFO(policy);
    LayerSetup first = on("pread", image, 120), second = on("pread", image, 60, 2);
    first.policy = second.policy = policy;
    first.cache_rows_reserved = 200;
    LiveTier live(*device, spec, {first, second});
    std::vector<LayerCoreOptions> options;  // as they are when the record begins
    for (std::size_t l = 0; l < 2; ++l) {
      options.push_back(live.tier->core(l).options());
      options.back().descriptors = nullptr;
    }
    std::vector<CoreLog> logs;
    live.tier->record(&logs);
    std::mt19937_64 random(7);
    std::vector<std::uint32_t> hot(200);
    for (std::uint32_t r = 0; r < 200; ++r) hot[r] = 11 * r;
    if (policy == "static") live.tier->hold(0, hot);
    for (int s = 0; s < 60; ++s) {
      if (s % 7 == 3) live.tier->resize_cache(0, random() % 201);
      Control control;
      control.row_dedup = random() % 4 != 0;
      control.page_dedup = random() % 4 != 0;
      control.watchdog = random() % 4 == 0 ? 1 : 5'000'000'000;  // a nanosecond: reads are given up while they are out there
      if (s % 3 == 0) live.tier->apply(control);
      if (s % 10 == 5) {
        std::vector<std::uint32_t> prefill(60 * static_cast<std::size_t>(spec.max_ngram));
        for (auto& id : prefill) id = static_cast<std::uint32_t>(live.random() % 40);
        live.tier->advance(prefill);
        live.tier->fill_advanced();
      }
      live.draw();
      for (const auto& layer : live.step().layers) {
        given_up += layer.status == StepStatus::timed_out;
        faulty += layer.status == StepStatus::read_error;
        hits += layer.counts.hits;
      }
      REQUIRE(live.checks.mismatches == 0);
    }
    live.tier.reset();  // late pages are in the record, too
    for (std::size_t l = 0; l < 2; ++l) {
      REQUIRE(logs[l].size() > 150);
      LayerCore fresh(options[l]);
      REQUIRE(replay(logs[l], fresh) == "");
    }
    // A record that was changed is found out.
    CoreLog changed = logs[0];
    for (auto& event : changed)
      if (event.kind == CoreEvent::Kind::indices && event.epoch == 20)
        for (auto& row : event.rows) row ^= 1;
    LayerCore fresh(options[0]);
    REQUIRE(replay(changed, fresh) != "");
  }
  REQUIRE(given_up > 10);
  REQUIRE(faulty > 10);
  REQUIRE(hits > 200);
}
