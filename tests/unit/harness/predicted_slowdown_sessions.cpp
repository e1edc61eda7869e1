// Eq. 1 on what one knows before a run (earlier steps' pages of each rank, a device's times, windows) against the virtual
// clock's later steps, on random configurations that nothing was fitted to.
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "harness/sim.hpp"
#include "reports/averages.hpp"
#include "reports/exposure.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

struct Drawn {
  StepModel model;
  ServiceModels services;
  CostModel costs;
  Placement placement;
  std::uint32_t sessions = 0, q = 1;
};

double between(std::mt19937_64& random, double lo, double hi) {
  return lo + (hi - lo) * (static_cast<double>(random() >> 11) * 0x1p-53);
}

// Windows, disks, caches and loads as one meets them: windows from none to long, disks from 0.3 to 6 us a page.
Drawn draw(std::mt19937_64& random) {
  Drawn drawn;
  const double w1 = between(random, 50, 1500), w14 = w1 + between(random, 1000, 10000),
               step = w14 + between(random, 1000, 20000);
  drawn.model.layer_time.assign(40, 0);
  drawn.model.layer_time[0] = static_cast<Nanos>(w1 * 1e3);
  drawn.model.layer_time[13] = static_cast<Nanos>((w14 - w1) * 1e3);
  drawn.model.layer_time[39] = static_cast<Nanos>((step - w14) * 1e3);
  ServiceModel disk;
  disk.latency_us = between(random, 30, 400);
  disk.page_us = between(random, 0.3, 6);
  disk.later_share = between(random, 0, 0.4);
  disk.jitter = between(random, 0, 0.08);
  disk.own_device = random() % 4 == 0;
  drawn.services.add("uring", 1, 1, disk);
  drawn.costs.indices_us = between(random, 5, 60);
  drawn.costs.lookup_us = between(random, 0.005, 0.06);
  drawn.costs.miss_us = between(random, 0.01, 0.06);
  drawn.costs.release_us = between(random, 2, 12);
  for (const int k : {1, 14}) {
    LayerPlacement& layer = drawn.placement.layers[k];
    layer.source = random() % 6 == 0 ? "dram" : "uring";
    layer.disks = static_cast<std::uint32_t>(1 + random() % 4);
    layer.cache_rows_per_rank = std::vector<std::uint64_t>{0, 1000, 5000, 20000}[random() % 4];
  }
  drawn.placement.name = "drawn";
  drawn.placement.layers[14].disks = drawn.placement.layers[1].disks;
  drawn.sessions = std::vector<std::uint32_t>{16, 48, 96, 128}[random() % 4];
  return drawn;
}

}  // namespace

TEST_CASE("predicted slowdowns are within 0.1 ms of the virtual clock's", "[predicted_slowdown_sessions]") {
  std::string name = (std::filesystem::temp_directory_path() / "slacktier-predicted-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const std::filesystem::path folder = name;
  std::ofstream(folder / "small.json") << R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32",
    "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": 256,
    "engram_vocab_size": 60000, "engram_pad_token_id": 0, "vocab_size": 128000, "compressed_vocab_size": 128000, "seed": 0})";
  const std::string table = (folder / "small.json").string();
  const TableSpec spec = load_table_spec(table);

  for (const std::uint64_t seed : {101u, 202u, 303u}) {
    std::mt19937_64 random(seed);
    double sum = 0, largest = 0;
    int n = 0, slowed = 0;
    // Configurations of one load share its steps.
    struct Load {
      Campaign campaign;
      std::unique_ptr<StepTrace> trace;
      std::unique_ptr<DirectoryPasses> passes;
    };
    std::map<std::uint32_t, Load> loads;
    for (int trial = 0; trial < 100; ++trial) {
      const Drawn drawn = draw(random);
      Load& load = loads[drawn.sessions];
      if (!load.trace) {
        load.campaign.table = table;
        load.campaign.sessions = drawn.sessions;
        load.campaign.warm_steps = 150;
        load.campaign.seed = seed;
        load.trace = std::make_unique<StepTrace>(record_steps(load.campaign, {seed % 2 ? "agent" : "chat", {}}, spec,
                                                              TokenMap(), load.campaign.warm_steps + 240));
        load.passes =
            std::make_unique<DirectoryPasses>(*load.trace, spec, load.campaign, std::vector<std::uint32_t>{2, 3, 4});
      }
      constexpr std::uint32_t ranks = 4;
      std::vector<const PassResult*> passes;
      for (std::size_t l = 0; l < 2; ++l)
        for (std::uint32_t rank = 0; rank < ranks; ++rank) {
          const LayerPlacement& layer = drawn.placement.layers.at(spec.layers[l].layer);
          PassKey key;
          key.layer_index = l;
          key.rank = rank;
          key.resident = layer.source == "dram";
          if (!key.resident) key.cache_rows = layer.cache_rows_per_rank;
          key.warm_steps = load.campaign.warm_steps;
          passes.push_back(&load.passes->at(key));
        }

      VirtualClock clock(spec, drawn.model, drawn.placement, ranks, drawn.services, drawn.costs);
      Placement dram = drawn.placement;
      for (auto& [k, layer] : dram.layers) layer = {};
      VirtualClock baseline(spec, drawn.model, dram, ranks, drawn.services, drawn.costs);
      std::vector<RankStep> in(8), none(8);
      std::mt19937_64 noise(seed * 1000 + static_cast<std::uint64_t>(trial));
      std::normal_distribution<double> normal;
      const std::size_t steps = passes[0]->steps.size();
      std::vector<double> window(2);
      for (std::size_t l = 0; l < 2; ++l) window[l] = static_cast<double>(drawn.model.window(spec.layers[l].layer)) / 1e6;
      std::vector<std::vector<double>> arrivals;
      double simulated = 0;
      for (std::size_t s = 0; s < steps; ++s) {
        for (std::size_t i = 0; i < 8; ++i) {
          const StepOutcome& outcome = passes[i]->steps[s];
          const std::uint32_t disks = clock.disks(i / ranks);
          in[i] = {outcome.owned, outcome.misses, outcome.pages, 0,
                   disks > 1 ? &passes[i]->pages_on.at(disks)[s * disks] : nullptr};
          none[i] = {outcome.owned, 0, 0, 0, nullptr};
        }
        const StepDraw step_draw{1 + 0.02 * normal(noise), normal(noise), normal(noise)};
        const StepTimes& times = clock.step(in, step_draw);
        // The first half is known: when each layer's slowest rank had its pages. The second is what is to be predicted.
        if (s < steps / 2) {
          std::vector<RankReads> reads(ranks);
          for (std::uint32_t r = 0; r < ranks; ++r) {
            double first = -1;
            for (std::size_t l = 0; l < 2; ++l)
              if (const double at = times.ranks[l * ranks + r].submitted_us; at >= 0 && (first < 0 || at < first))
                first = at;
            reads[r].resolve_ms = std::max(0.0, first) / 1e3;
            for (std::size_t l = 0; l < 2; ++l) {
              const double arrived = times.ranks[l * ranks + r].arrived_us;
              reads[r].read_ms.push_back(arrived < 0 ? 0 : arrived / 1e3 - reads[r].resolve_ms);
            }
          }
          arrivals.push_back(slowest_arrivals(reads));
        } else {
          simulated += (times.step_us - baseline.step(none, step_draw).step_us) / 1e3;
        }
      }
      simulated /= static_cast<double>(steps - steps / 2);
      const double predicted = mean(exposed_samples(arrivals, window));
      sum += (predicted - simulated) * (predicted - simulated);
      largest = std::max(largest, std::abs(predicted - simulated));
      slowed += simulated > 0.05;
      ++n;
    }
    std::printf("seed %d: %d configurations, %d slowed; RMSE %.3f ms, largest %.3f ms\n", static_cast<int>(seed), n, slowed,
                std::sqrt(sum / n), largest);
    CHECK(slowed >= 30);  // else there was little to predict
    CHECK(std::sqrt(sum / n) <= 0.10);
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}
