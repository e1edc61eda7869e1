// A placement's steps in modelled time against the exposure recurrence, and what must never happen.
#include "harness/virtual_clock.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "harness/step_model.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

ServiceModels disk_of(double latency_us, double page_us, double share = 0) {
  ServiceModel model;
  model.latency_us = latency_us;
  model.page_us = page_us;
  model.later_share = model.interleaved_share = share;
  ServiceModels models;
  models.add("uring", 1, 1, model);
  return models;
}

Placement both_on(const LayerPlacement& layer) {
  Placement placement;
  placement.name = "p";
  placement.layers = {{1, layer}, {14, layer}};
  return placement;
}

LayerPlacement uring() {
  LayerPlacement layer;
  layer.source = "uring";
  return layer;
}

struct Setting {
  TableSpec spec = load_table_spec("engram_v41");
  StepModel model = paper_v41_model();
};

double positive(double x) { return std::max(0.0, x); }

}  // namespace

TEST_CASE("the slowdown is the exposure recurrence's", "[virtual_clock]") {
  const Setting setting;
  const double w1 = static_cast<double>(setting.model.window(1)) / 1e3,
               w14 = static_cast<double>(setting.model.window(14)) / 1e3;
  const double step = static_cast<double>(setting.model.step()) / 1e3;
  std::mt19937_64 random(11);
  for (int trial = 0; trial < 300; ++trial) {
    CostModel costs;
    costs.indices_us = static_cast<double>(random() % 200);
    costs.resolve_us = static_cast<double>(random() % 50);
    costs.extra_us = static_cast<double>(random() % 30);
    const double a = static_cast<double>(random() % 500), page = static_cast<double>(1 + random() % 200) / 10;
    VirtualClock clock(setting.spec, setting.model, both_on(uring()), 1, disk_of(a, page), costs);
    const auto p1 = static_cast<std::uint32_t>(random() % 800), p14 = static_cast<std::uint32_t>(random() % 800);
    const StepTimes& times = clock.step({{768, 0, p1, 0, nullptr}, {768, 0, p14, 0, nullptr}});
    // s, and both layers' arrivals at a single server: the second's pages behind the first's.
    const double s1 = costs.indices_us + costs.resolve_us, s14 = s1 + costs.resolve_us;
    const double served1 = s1 + page * p1;
    const double at1 = p1 > 0 ? served1 + a : s1;
    const double at14 = p14 > 0 ? std::max(s14, p1 > 0 ? served1 : 0) + page * p14 + a : s14;
    const double d1 = positive(at1 - w1), d14 = positive(at14 - w14 - d1);
    CHECK(times.step_us == Approx(step + d1 + d14 + costs.extra_us).epsilon(1e-9));
    CHECK(times.ranks[0].stall_us == Approx(d1).margin(1e-6));
    CHECK(times.ranks[1].stall_us == Approx(d14).margin(1e-6));
  }
}

TEST_CASE("ranks queue at one disk, and the slowest sets the step", "[virtual_clock]") {
  const Setting setting;
  const CostModel free;
  VirtualClock clock(setting.spec, setting.model, both_on(uring()), 4, disk_of(0, 1), free);
  const RankStep none, busy{768, 768, 500, 0, nullptr};
  const StepTimes alone = clock.step({none, none, none, busy, none, none, none, none});
  CHECK(alone.ranks[3].arrived_us == Approx(500));
  const StepTimes all = clock.step({busy, busy, busy, busy, none, none, none, none});
  CHECK(all.ranks[3].arrived_us == Approx(2000));
  CHECK(all.ranks[0].opened_us == Approx(2000));
  CHECK(all.step_us > alone.step_us);
  // A network card of each rank's own is not shared.
  ServiceModel card;
  card.page_us = 1;
  card.own_device = true;
  ServiceModels cards;
  cards.add("uring", 1, 1, card);
  VirtualClock remote(setting.spec, setting.model, both_on(uring()), 4, cards, free);
  CHECK(remote.step({busy, busy, busy, busy, none, none, none, none}).ranks[3].arrived_us == Approx(500));
}

TEST_CASE("wrappers mean on the virtual clock what they mean on a live tier", "[virtual_clock]") {
  const Setting setting;
  const CostModel free;
  const RankStep none, busy{768, 768, 500, 0, nullptr};
  LayerPlacement layer = uring();
  layer.wrappers = {"shared:tenants=3"};
  VirtualClock shared(setting.spec, setting.model, both_on(layer), 1, disk_of(0, 1), free);
  CHECK(shared.step({busy, none}).ranks[0].arrived_us == Approx(1500));
  layer.wrappers = {"delayed:latency_us=120,gb_per_s=1"};
  VirtualClock delayed(setting.spec, setting.model, both_on(layer), 1, disk_of(0, 1), free);
  CHECK(delayed.step({busy, none}).ranks[0].arrived_us == Approx(120 + 500 * 4.096));
  VirtualClock behind(setting.spec, setting.model, both_on(layer), 1, disk_of(300, 10), free);
  CHECK(behind.step({busy, none}).ranks[0].arrived_us == Approx(300 + 500 * 10));  // what the device takes hides the link
  layer.wrappers = {"faulty:class=torn,probability=0.1"};
  CHECK_THROWS_WITH(VirtualClock(setting.spec, setting.model, both_on(layer), 1, disk_of(0, 1), free),
                    contains_text("--device cpu"));
}

TEST_CASE("reads on demand begin when the model has come to the layer", "[virtual_clock]") {
  const Setting setting;
  LayerPlacement layer = uring();
  layer.on_demand = true;
  VirtualClock clock(setting.spec, setting.model, both_on(layer), 1, disk_of(100, 1), CostModel());
  const RankStep busy{768, 768, 500, 0, nullptr};
  const double step = static_cast<double>(setting.model.step()) / 1e3;
  CHECK(clock.step({busy, busy}).step_us == Approx(step + 600 + 600));
}

TEST_CASE("a slower device never makes a step shorter", "[virtual_clock]") {
  const Setting setting;
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<RankStep> in(8);
    for (RankStep& rank : in) rank.pages = static_cast<std::uint32_t>(random() % 700);
    const double share = static_cast<double>(random() % 100) / 100;
    double before = 0;
    for (const double page : {0.1, 0.4, 0.7, 1.5, 4.0, 20.0}) {
      VirtualClock clock(setting.spec, setting.model, both_on(uring()), 4, disk_of(100 * page, page, share), paper_costs());
      const double step = clock.step(in).step_us;
      CHECK(step >= before - 1e-6);
      before = step;
    }
  }
}

TEST_CASE("read times are of the source, or the nearest that was measured", "[virtual_clock]") {
  const Setting setting;
  LayerPlacement layer = uring();
  layer.disks = 4;
  layer.threads = 4;
  const ServiceModels paper = paper_services();
  CHECK(paper.measured(layer));
  layer.threads = 2;
  CHECK_FALSE(paper.measured(layer));
  CHECK(paper.find(layer).page_us == Approx(3.05 / 4));
  layer.source = "rdma";
  CHECK(paper.find(layer).own_device);
  CHECK_THROWS_WITH(disk_of(1, 1).find(layer), contains_text("rdma"));
}

TEST_CASE("a step allocates nothing", "[virtual_clock]") {
  const Setting setting;
  LayerPlacement layer = uring();
  layer.disks = 4;
  layer.wrappers = {"shared:tenants=3"};
  VirtualClock clock(setting.spec, setting.model, both_on(layer), 4, paper_services(), paper_costs());
  const std::vector<RankStep> in(8, RankStep{768, 768, 700, 0, nullptr});
  clock.step(in);
  const std::size_t before = allocation_count();
  for (int i = 0; i < 100; ++i) clock.step(in);
  CHECK(allocation_count() == before);
}
