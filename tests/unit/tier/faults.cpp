// Every class of fault against every source, under a live tier: no hang, no wrong row, a named error, and the next healthy
// step right.
#include <cstdint>
#include <map>

#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

namespace {

constexpr Nanos ms = 1'000'000;

// What a fault's message must say of it; empty: the step only becomes late.
const std::map<std::string, std::string> reasons = {
    {"eio", "Input/output error"}, {"short", "cut short"}, {"torn", "torn"},           {"stale", "stale"},
    {"zero", "never written"},     {"foreign", "foreign"}, {"misplaced", "misplaced"}, {"late", ""}};

TierOptions checked() {
  TierOptions options;
  options.verify_checksum = true;  // torn pages show by nothing else
  return options;
}

}  // namespace

TEST_CASE("every fault of every source: zeros with a status, named, and the step after it is right", "[faults]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 2);
  REQUIRE(reasons.size() == fault_classes().size());
  for (const std::string& source : disk_source_names())
    for (const std::string& fault : fault_classes())
      for (const bool on_demand : {false, true}) {
        INFO(source << " " << fault << " " << on_demand);
        LayerSetup bad_layer = on(source, image, 300, 2, {"faulty:late_ms=5,nth=3,class=" + fault});
        if (on_demand) bad_layer.read = ReadMode::on_demand;
        Live live(*device, spec, {bad_layer, on(source, image, 300)}, checked());
        live.draw(400);
        const StepReport& bad = live.step();
        REQUIRE(bad.layers[1].status == StepStatus::ok);
        REQUIRE(live.checks.mismatches == 0);
        const std::string reason = reasons.at(fault);
        if (reason.empty()) {
          REQUIRE(bad.layers[0].status == StepStatus::ok);
          REQUIRE(bad.layers[0].arrived - bad.layers[0].submitted >= 5 * ms);
          REQUIRE(live.checks.undelivered == 0);
        } else {
          REQUIRE(bad.layers[0].status == StepStatus::read_error);
          REQUIRE(bad.layers[0].counts.failed > 0);
          REQUIRE(live.checks.undelivered == bad.layers[0].counts.failed);
          REQUIRE_THAT(bad.layers[0].fault, contains_text("layer 1: page ") && contains_text(reason));
          const bool names_disk = bad.layers[0].fault.find(image[0]) != std::string::npos ||
                                  bad.layers[0].fault.find(image[1]) != std::string::npos;
          REQUIRE(names_disk);
        }
        // The same rows again: what failed was not cached, and is read now.
        const std::uint64_t undelivered = live.checks.undelivered;
        const StepReport& good = live.step();
        REQUIRE(good.layers[0].status == StepStatus::ok);
        REQUIRE(good.layers[0].fault.empty());
        if (!reason.empty()) REQUIRE(good.layers[0].counts.misses > 0);
        REQUIRE(live.checks.mismatches == 0);
        REQUIRE(live.checks.undelivered == undelivered);
      }
}

TEST_CASE("every fault of every source in a prefill: zeros with a status, named, and the chunk after it is right",
          "[faults]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 2);
  for (const std::string& source : disk_source_names())
    for (const std::string& fault : fault_classes()) {
      INFO(source << " " << fault);
      TierOptions options = checked();
      options.prefill_tokens = 300;
      Live live(*device, spec,
                {on(source, image, 300, 2, {"faulty:late_ms=5,nth=60,class=" + fault}), on(source, image, 300)}, options);
      std::vector<std::uint32_t> chunk(300 * static_cast<std::size_t>(spec.max_ngram));
      for (auto& id : chunk) id = static_cast<std::uint32_t>(live.random() % 400);
      CheckReport checks;
      const PrefillReport& report = live.tier->prefill(*live.main, chunk, &checks);
      const std::string reason = reasons.at(fault);
      REQUIRE(checks.mismatches == 0);
      REQUIRE(report.layers[1].status == StepStatus::ok);
      if (reason.empty()) {
        REQUIRE(report.layers[0].status == StepStatus::ok);
        REQUIRE(checks.undelivered == 0);
      } else {
        REQUIRE(report.layers[0].status == StepStatus::read_error);
        REQUIRE_THAT(report.layers[0].fault, contains_text("layer 1: page ") && contains_text(reason));
        REQUIRE(checks.undelivered > 0);
      }
      const std::uint64_t undelivered = checks.undelivered;
      REQUIRE(live.tier->prefill(*live.main, chunk, &checks).layers[0].status == StepStatus::ok);
      REQUIRE(checks.mismatches == 0);
      REQUIRE(checks.undelivered == undelivered);
      live.draw(400);
      live.step();
      REQUIRE(live.checks.mismatches == 0);
      REQUIRE(live.checks.undelivered == 0);
    }
}

TEST_CASE("late pages of a step that was given up open no later gate and write into no page in use", "[faults]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 1);
  for (const std::string& source : disk_source_names())
    for (const bool on_demand : {false, true}) {
      INFO(source << " " << on_demand);
      TierOptions options = checked();
      options.watchdog = 30 * ms;
      LayerSetup late_layer = on(source, image, 200, 1, {"faulty:class=late,nth=5,late_ms=120"});
      if (on_demand) late_layer.read = ReadMode::on_demand;
      Live live(*device, spec, {late_layer, on(source, image, 200)}, options);
      live.draw(400);
      const StepReport& given_up = live.step();
      REQUIRE(given_up.layers[0].status == StepStatus::timed_out);
      REQUIRE_THAT(given_up.layers[0].fault, contains_text("not in after 30 ms"));
      REQUIRE(given_up.layers[0].opened - given_up.layers[0].resolve_end >= 30 * ms);
      REQUIRE(given_up.layers[0].counts.failed > 0);
      // Steps before, while and after the late pages come.
      const Nanos end = monotonic_clock().now() + 250 * ms;
      int steps = 0;
      do {
        live.draw(400);
        const std::uint64_t undelivered = live.checks.undelivered;
        const StepReport& next = live.step();
        ++steps;
        // A machine under load may be late on its own; then rows are missing, and it is said.
        REQUIRE(next.layers[0].status != StepStatus::read_error);
        for (const auto& layer : next.layers)
          if (layer.status == StepStatus::ok && layer.arrived >= 0) REQUIRE(layer.opened >= layer.arrived);
        if (next.layers[0].status == StepStatus::ok && next.layers[1].status == StepStatus::ok)
          REQUIRE(live.checks.undelivered == undelivered);
      } while (steps < 3 || monotonic_clock().now() < end);
      REQUIRE(live.checks.mismatches == 0);
    }
}

TEST_CASE("a disk on which every page is late: each step is given up in time, and the tier ends", "[faults]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 1);
  for (const std::string& source : disk_source_names()) {
    INFO(source);
    TierOptions options = checked();
    options.watchdog = 10 * ms;
    Live live(*device, spec, {on(source, image, 200, 1, {"faulty:class=late,probability=1,late_ms=45"}), on("dram", {}, 0)},
              options);
    for (int s = 0; s < 15; ++s) {
      live.draw(400);
      const StepReport& report = live.step();
      const StepStatus status = report.layers[0].status;
      REQUIRE((status == StepStatus::timed_out || status == StepStatus::no_buffers));
      REQUIRE(report.layers[0].counts.hits == 0);
      REQUIRE(report.layers[1].status == StepStatus::ok);
    }
    REQUIRE(live.checks.mismatches == 0);
    REQUIRE(live.checks.undelivered > 0);
  }
}

TEST_CASE("steps in which any page may fail in any way: zeros or the right row, never another", "[faults]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  const auto image = stage_small(folder, spec, 1);
  std::string all;
  for (const auto& fault : fault_classes()) all += (all.empty() ? "" : "+") + fault;
  std::map<StepStatus, int> statuses;  // of all sources: a busy machine may be too slow for one of them throughout
  for (const std::string& source : disk_source_names()) {
    INFO(source);
    TierOptions options = checked();
    options.watchdog = 60 * ms;
    const std::string faulty = "faulty:probability=0.01,late_ms=90,class=" + all;
    Live live(*device, spec, {on(source, image, 200, 2, {faulty}), on(source, image, 1000, 2, {"shared:tenants=2", faulty})},
              options);
    for (int s = 0; s < 40; ++s) {
      live.draw(400);
      for (const auto& layer : live.step().layers) {
        ++statuses[layer.status];
        REQUIRE(layer.fault.empty() == (layer.status == StepStatus::ok || layer.status == StepStatus::no_buffers));
      }
    }
    REQUIRE(live.checks.mismatches == 0);
    REQUIRE(live.checks.undelivered > 0);
  }
  REQUIRE(statuses[StepStatus::ok] > 0);
  REQUIRE(statuses[StepStatus::read_error] > 0);
}
