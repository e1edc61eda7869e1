// A control file replaced while a tier runs on cpu: changes apply between steps, rows stay right.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

struct Controlled {
  ScratchFolder folder;
  TableSpec spec = small_table(folder);
  std::vector<std::string> image = stage_small(folder, spec, 1), two = stage_small(folder, spec, 2);
  std::unique_ptr<Device> device = open_device("cpu");
  LiveTier live;
  std::string path = folder.file("control.json");

  Controlled() : live(*device, spec, layers()) { live.tier->watch_control(path); }

  std::vector<LayerSetup> layers() const {
    std::vector<LayerSetup> setups = {on("pread", image, 50), on("pread", two, 100, 2)};
    setups[0].cache_rows_reserved = 200;
    return setups;
  }
  void replace(const std::string& results) const {
    std::ofstream(path + ".new") << R"({"schema": "slacktier/control/1.0", "results": )" << results << "}";
    std::filesystem::rename(path + ".new", path);
  }
  const StepReport& step() {
    live.draw();
    const StepReport& report = live.step();
    for (const auto& layer : report.layers) REQUIRE(layer.status == StepStatus::ok);
    REQUIRE(live.checks.mismatches == 0);
    return report;
  }
  std::string last_problem() const { return live.tier->control_news().back().problem; }
  std::uint32_t slots(std::size_t layer) const { return live.tier->core(layer).directory()->slots(); }
};

}  // namespace

TEST_CASE("each replacement of the control file holds from the next step on", "[live_control]") {
  Controlled run;
  REQUIRE(run.step().control_generation == 0);
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 120}}, "dedup": {"rows": false}})");
  REQUIRE(run.slots(0) == 50);
  const StepReport& first = run.step();
  REQUIRE(first.control_generation == 1);
  REQUIRE(run.slots(0) == 120);
  REQUIRE(first.layers[0].counts.reused == 0);
  REQUIRE(run.live.tier->control_news().back().epoch == 2);
  for (int s = 0; s < 5; ++s) REQUIRE(run.step().control_generation == 1);
  run.replace(
      R"({"layers": {"1": {"cache_rows_per_rank": 10}, "3": {"cache_rows_per_rank": 0}}, "dedup": {"rows": true, "pages": false},
                 "order": "interleaved", "watchdog_ms": 60000})");
  const StepReport& second = run.step();
  REQUIRE(second.control_generation == 2);
  REQUIRE(run.slots(0) == 10);
  REQUIRE(run.slots(1) == 0);
  REQUIRE(second.layers[1].counts.hits == 0);
  REQUIRE(second.layers[1].counts.pages == second.layers[1].counts.misses);  // no page dedup

  // The layers change their sources: other disks, other threads.
  run.replace(R"({"layers": {"1": {"disks": 2, "threads": 2, "cache_rows_per_rank": [200]}, "3": {"disks": 1, "threads": 1}},
                 "dedup": {"pages": true}})");
  REQUIRE(run.step().control_generation == 3);
  REQUIRE(run.slots(0) == 200);
  for (int s = 0; s < 20; ++s) run.step();
  REQUIRE(run.live.checks.undelivered == 0);
  REQUIRE(run.live.checks.pages > 0);
}

TEST_CASE("a bad control file keeps every old value and says why, once", "[live_control]") {
  Controlled run;
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 70}}})");
  run.step();
  const auto refused = [&](const std::string& why) {
    const std::size_t before = run.live.tier->control_news().size();
    REQUIRE(run.step().control_generation == 1);
    run.step();
    INFO(run.last_problem());
    REQUIRE(run.live.tier->control_news().size() == before + 1);
    REQUIRE(run.last_problem().starts_with(run.path));
    REQUIRE(run.last_problem().find(why) != std::string::npos);
    REQUIRE(run.slots(0) == 70);
    REQUIRE(run.slots(1) == 100);
  };
  // Each of these begins with something that could be done.
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}, "3": {"cache_rows_per_rank": 101}}})");
  refused("layers.3.cache_rows_per_rank: 101 rows are more than the 100 reserved");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}}, "cache": {"policy": "lru"}})");
  refused("cache.policy");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5, "threads": 9}}})");
  refused("pread over 1 disk(s) with 9 thread(s) is not open; open are pread over 1 disk(s) with 1 thread(s), pread over 2");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": [5, 5]}}})");
  refused("has 2 entries, the table 1 ranks");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}, "3": {"source": "dram"}}})");
  refused("layers.3.source");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}, "3": {"source": "peer", "peer": "cuda:1"}}})");
  refused("layers.3.source");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}}, "unheard": 1})");
  refused("unheard");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}})");
  refused("not JSON");
  std::filesystem::remove(run.path);
  refused("is gone");
  run.replace(R"({"layers": {"1": {"cache_rows_per_rank": 5}}})");
  REQUIRE(run.step().control_generation == 2);
  REQUIRE(run.slots(0) == 5);
  REQUIRE(run.last_problem().empty());
}

TEST_CASE("a writer that never stops replacing the file", "[live_control]") {
  Controlled run;
  std::mt19937_64 random(1);
  std::uint64_t generation = 0;
  for (int s = 0; s < 120; ++s) {
    // Between two looks there may be several replacements, and some are half written.
    for (std::uint64_t k = random() % 3; k > 0; --k)
      run.replace(R"({"layers": {"1": {"cache_rows_per_rank": )" + std::to_string(random() % 201) + "}}, \"order\": \"" +
                  (random() % 2 ? "layer-first" : "interleaved") + "\"}");
    if (random() % 4 == 0) std::ofstream(run.path) << "{\"schema\": \"slacktier/con";
    const std::uint64_t now = run.step().control_generation;
    REQUIRE(now >= generation);
    generation = now;
  }
  REQUIRE(generation > 40);
  REQUIRE(run.live.checks.undelivered == 0);
}

TEST_CASE("a control file that does not change costs no allocation", "[live_control]") {
  Controlled run;
  run.replace("{}");
  for (int s = 0; s < 30; ++s) run.step();
  std::size_t allocated = 0;
  for (int s = 0; s < 50; ++s) {
    run.live.draw();
    const std::size_t before = allocation_count();
    run.live.tier->begin_step(run.live.context, run.live.active);
    run.live.graph->launch(*run.live.main);
    run.live.main->synchronize();
    run.live.tier->finish_step();
    allocated += allocation_count() - before;
  }
  REQUIRE(allocated == 0);
}

TEST_CASE("the injected delay changes between two steps", "[live_control]") {
  Controlled run;
  LayerSetup slow = on("pread", run.image, 0), plain = on("pread", run.image, 0);
  slow.wrappers = {"delayed:latency_us=1"};
  LiveTier live(*run.device, run.spec, {slow, plain});
  const auto read_time = [&] {
    live.draw();
    const StepReport& report = live.step();
    REQUIRE(report.layers[0].counts.pages > 0);
    return report.layers[0].arrived - report.layers[0].submitted;
  };
  read_time();
  Control control;
  control.layers[1].delay = LinkDelay{30'000, 0};
  live.tier->apply(control);
  REQUIRE(read_time() > 29'000'000);
  control.layers[1].delay = LinkDelay{0, 0};
  live.tier->apply(control);
  Nanos shortest = read_time();
  for (int s = 0; s < 10; ++s) shortest = std::min(shortest, read_time());
  REQUIRE(shortest < 29'000'000);
  REQUIRE(live.checks.mismatches == 0);
  Control wrong;
  wrong.layers[3].delay = LinkDelay{5, 0};
  REQUIRE_THROWS_AS(live.tier->apply(wrong), UsageError);
}
