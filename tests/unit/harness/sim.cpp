// Campaigns on the virtual clock: the same bytes again, and the same lookups as a live tier.
#include "harness/sim.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/run.hpp"
#include "platforms/device.hpp"
#include "reports/results_file.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "slacktier-sim-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path = name;
    std::ofstream(path / "small.json") << R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32",
      "engram_layer_ids": [1, 3], "engram_max_ngram_size": 3, "engram_n_heads": 4, "engram_head_dim": 256,
      "engram_vocab_size": 8000, "engram_pad_token_id": 0, "vocab_size": 128000, "compressed_vocab_size": 128000, "seed": 0})";
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

Campaign small_campaign(const Folder& folder) {
  Campaign campaign;
  campaign.name = "small";
  campaign.table = (folder.path / "small.json").string();
  campaign.ranks = 2;
  campaign.rank = 1;
  campaign.sessions = 8;
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  campaign.warm_steps = 30;
  campaign.blocks = 3;
  campaign.block_steps = 6;
  campaign.lead_steps = 1;
  campaign.image_bytes = 64 << 20;
  const auto placement = [](const char* name, const char* source, std::uint64_t rows1, std::uint64_t rows3) {
    Placement p;
    p.name = name;
    for (const auto& [k, rows] : {std::pair{1, rows1}, {3, rows3}}) {
      p.layers[k].source = source;
      p.layers[k].cache_rows_per_rank = rows;
    }
    return p;
  };
  campaign.placements = {placement("baseline", "dram", 0, 0), placement("uncached", "buffered", 0, 0),
                         placement("cached", "buffered", 300, 2000), placement("static", "buffered", 500, 500),
                         placement("no dedup", "buffered", 500, 0)};
  campaign.placements[3].cache_policy = "static";
  campaign.placements[4].row_dedup = campaign.placements[4].page_dedup = false;
  return campaign;
}

SimOptions small_options() {
  SimOptions options;
  options.model = uniform_model(5, 1'000'000);
  options.services = paper_services();
  options.costs = paper_costs();
  options.step_jitter = 0.02;
  options.quiet = true;
  return options;
}

}  // namespace

TEST_CASE("equal seeds give equal bytes, other seeds others", "[sim]") {
  const Folder folder;
  Campaign campaign = small_campaign(folder);
  const std::string once = simulate_campaign(campaign, small_options()).results.dump();
  CHECK(simulate_campaign(campaign, small_options()).results.dump() == once);
  campaign.seed = 2;
  CHECK(simulate_campaign(campaign, small_options()).results.dump() != once);
}

TEST_CASE("all ranks are in the result, and the envelope fits its schema", "[sim]") {
  const Folder folder;
  Envelope results = simulate_campaign(small_campaign(folder), small_options());
  results.provenance = provenance({"slacktier-harness run", {"slacktier-harness", "run"}, 1, 0, Json::object()});
  CHECK_FALSE(to_text(results).empty());
  const auto all = configurations(results);
  REQUIRE(all.size() == 10);
  for (const ConfigurationResult& c : all) {
    REQUIRE(c.layers.size() == 2);
    CHECK(c.layers[0].ranks.size() == 2);
    CHECK(c.steps == 18);
    if (c.baseline) CHECK(c.slowdown.has_value());
  }
}

TEST_CASE("lookups, hits and pages are those of a live tier", "[sim]") {
  const Folder folder;
  const Campaign campaign = small_campaign(folder);
  SimOptions sim = small_options();
  sim.ranks = {campaign.rank};
  const auto modelled = configurations(simulate_campaign(campaign, sim));

  RunOptions live;
  live.model = sim.model;
  live.images.disks = {folder.path.string()};
  live.images.quiet = live.quiet = true;
  const auto device = open_device("cpu");
  const RunOutcome outcome = run_campaign(*device, campaign, live);
  REQUIRE(outcome.failure.empty());
  const auto measured = configurations(outcome.envelope);
  REQUIRE(measured.size() == modelled.size());
  for (std::size_t i = 0; i < measured.size(); ++i) {
    INFO(measured[i].name << ", " << measured[i].workload);
    CHECK(measured[i].name == modelled[i].name);
    for (std::size_t l = 0; l < 2; ++l) {
      const RankResult &a = measured[i].layers[l].ranks[0], &b = modelled[i].layers[l].ranks[0];
      CHECK(a.rank == b.rank);
      CHECK(a.lookups == b.lookups);
      CHECK(a.owned == b.owned);
      CHECK(a.hit_rate == b.hit_rate);
      CHECK(a.reuse_rate == b.reuse_rate);
      CHECK(a.p_any_miss == b.p_any_miss);
      CHECK(a.miss_pages_per_step.mean == b.miss_pages_per_step.mean);
      CHECK(a.miss_pages_per_step.max == b.miss_pages_per_step.max);
    }
  }
}

TEST_CASE("what only a live tier can do is refused", "[sim]") {
  const Folder folder;
  Campaign campaign = small_campaign(folder);
  campaign.prefill_reads = true;
  CHECK_THROWS_WITH(simulate_campaign(campaign, small_options()), contains_text("--prefill read"));
  campaign.prefill_reads = false;
  SimOptions options = small_options();
  options.ranks = {2};
  CHECK_THROWS_WITH(simulate_campaign(campaign, options), contains_text("ranks count from 0"));
  options = small_options();
  options.model = uniform_model(3, 1'000'000);
  CHECK_THROWS_WITH(simulate_campaign(campaign, options), contains_text("3 layers"));
}
