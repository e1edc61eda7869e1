// Ten million lookups, each compared with its origin, over configurations drawn at random: sources, wrappers, policies,
// splits, dedup, order, tokens per session, shards and faults. The same seed draws the same configurations and tokens.
#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t lookups_wanted = 300'000, per_configuration = 20'000;
#else
constexpr std::uint64_t lookups_wanted = 10'000'000, per_configuration = 200'000;
#endif
constexpr int steps_at_most = 60;  // of one configuration: small steps would take the time and bring few lookups

struct Images {
  std::vector<std::string> disks;
  std::uint32_t ranks = 1, rank = 0;
  ShardMap map = ShardMap::contiguous;
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  std::uint64_t seed() { return random_(); }

 private:
  std::mt19937_64 random_;
};

struct Configuration {
  std::vector<LayerSetup> layers;
  TierOptions options;
  std::uint32_t vocabulary = 0, q = 1;  // ids in use; tokens per session
  bool faulty = false;
  std::string text;
};

Configuration draw_configuration(Draw& draw, const Images& images) {
  Configuration c;
  const std::uint32_t q = draw.of<std::uint32_t>({1, 2, 4, 8}), sessions = draw.of<std::uint32_t>({8, 64, 256});
  c.q = q;
  c.options.max_tokens = sessions * q;
  c.options.ranks = images.ranks;
  c.options.rank = images.rank;
  c.options.shard_map = images.map;
  c.options.first_layer_first = draw.one_in(2);
  // Without dedup each lookup reads a page of its own: only in small steps.
  const bool small = c.options.max_tokens <= 128;
  c.options.row_dedup = !small || draw.one_in(2);
  c.options.page_dedup = !small || draw.one_in(2);
  c.options.verify_checksum = true;
  c.options.watchdog = 20'000'000'000;
  c.options.prefill_tokens = 200;
  const std::string policy = draw.of(directory_policies());
  const std::uint64_t budget = draw.of<std::uint64_t>({0, 20, 500, 4000, 100'000}), split = draw.below(11);
  c.vocabulary = draw.of<std::uint32_t>({20, 60, 500});
  c.text = policy + " budget " + std::to_string(budget) + " split " + std::to_string(split) + " q " + std::to_string(q) +
           " sessions " + std::to_string(sessions);
  for (std::uint64_t l = 0; l < 2; ++l) {
    std::vector<std::string> names = disk_source_names();
    for (const char* resident : {"dram", "hbm"}) names.emplace_back(resident);
    LayerSetup layer =
        on(draw.of(names), images.disks, budget * (l == 0 ? split : 10 - split) / 10, static_cast<int>(1 + draw.below(3)));
    layer.policy = policy;
    layer.cache_rows_reserved = draw.one_in(2) ? 0 : 2 * layer.cache_rows;
    if (is_resident_source(layer.source)) {
      layer.disks.clear();
      layer.cache_rows = layer.cache_rows_reserved = 0;
    } else {
      if (draw.one_in(3)) layer.read = ReadMode::on_demand;
      if (draw.one_in(4)) layer.wrappers.emplace_back("shared:tenants=2");
      if (draw.one_in(4)) layer.wrappers.emplace_back("delayed:latency_us=20,gb_per_s=10");
      if (draw.one_in(3)) {
        layer.wrappers.insert(
            layer.wrappers.begin() + static_cast<std::ptrdiff_t>(draw.below(layer.wrappers.size() + 1)),
            "faulty:class=eio+short+torn+stale+zero+foreign+misplaced+late,late_ms=1,probability=0.002,seed=" +
                std::to_string(draw.below(1000)));
        c.faulty = true;
      }
    }
    c.text += " | " + layer.source + " " + std::to_string(layer.cache_rows);
    for (const auto& wrapper : layer.wrappers) c.text += " " + wrapper;
    c.layers.push_back(layer);
  }
  return c;
}

// The caches change their sizes, and a fixed hot set gets rows that it does not hold yet.
void draw_cache(Live& live, const Configuration& c, Draw& draw) {
  for (std::size_t l = 0; l < 2; ++l) {
    const LayerSetup& layer = c.layers[l];
    if (is_resident_source(layer.source)) continue;
    live.tier->resize_cache(l, draw.below(live.tier->core(l).directory()->reserved() + 1));
    if (layer.policy != "static") continue;
    std::vector<std::uint32_t> rows(draw.below(layer.cache_rows + 1));
    for (auto& row : rows) row = static_cast<std::uint32_t>(draw.below(live.tier->core(l).options().shard.rows));
    live.tier->hold(l, rows);
  }
}

// Tokens as q of each session: the context of the next token is that of the one before it, moved by one.
void draw_tokens(Live& live, const Configuration& c, Draw& draw) {
  const auto order = static_cast<std::size_t>(live.spec.max_ngram);
  const std::size_t tokens = live.active.size();
  for (std::size_t t = 0; t < tokens; ++t) {
    std::uint32_t* context = &live.context[t * order];
    for (std::size_t i = 0; i < order; ++i)
      context[i] =
          t % c.q != 0 && i + 1 < order ? context[i + 1 - order] : static_cast<std::uint32_t>(draw.below(c.vocabulary));
    live.active[t] = t % c.q != 0 && !live.active[t - 1] ? 0 : !draw.one_in(12);
  }
}

}  // namespace

TEST_CASE("ten million checked lookups over random configurations: no row differs from its origin", "[checked_random]") {
  const ScratchFolder folder;
  const TableSpec spec = small_table(folder);
  const auto device = open_device("cpu");
  std::vector<Images> images = {{stage_small(folder, spec, 1)}, {stage_small(folder, spec, 4)}};
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    StageOptions stage;
    stage.disks = {folder.file(std::string("half-") + to_string(map))};
    stage.ranks = 2;
    stage.only_ranks = {1};
    stage.shard_map = map;
    stage_image(spec, stage);
    images.push_back({stage.disks, 2, 1, map});
  }
  Draw draw(20'240'607);
  CheckReport sum;
  std::uint64_t configurations = 0, failed_steps = 0;
  std::map<std::string, std::uint64_t> seen;
  while (sum.checked < lookups_wanted) {
    const Configuration c = draw_configuration(draw, draw.of(images));
    INFO("configuration " << configurations << ": " << c.text);
    ++configurations;
    ++seen[c.layers[0].source];
    ++seen[c.layers[1].policy];
    Live live(*device, spec, c.layers, c.options);
    for (int s = 0; s < steps_at_most && live.checks.checked < per_configuration; ++s) {
      if (s == 0 || draw.one_in(20)) draw_cache(live, c, draw);
      if (draw.one_in(10)) {  // a prefill in between, by the directories alone or read and delivered
        std::vector<std::uint32_t> prefill(200 * static_cast<std::size_t>(spec.max_ngram));
        for (auto& id : prefill) id = static_cast<std::uint32_t>(draw.below(c.vocabulary));
        if (draw.one_in(2)) {
          live.tier->advance(prefill);
          live.tier->fill_advanced();
        } else {
          for (const auto& layer : live.tier->prefill(*live.main, prefill, &live.checks).layers)
            if (!c.faulty) REQUIRE(layer.status == StepStatus::ok);
        }
      }
      draw_tokens(live, c, draw);
      const std::uint64_t undelivered = live.checks.undelivered;
      bool ok = true;
      for (const auto& layer : live.step().layers) {
        ok = ok && layer.status == StepStatus::ok;
        if (!c.faulty) REQUIRE(layer.status == StepStatus::ok);
      }
      REQUIRE((live.checks.undelivered > undelivered) == !ok);
      failed_steps += !ok;
    }
    INFO(live.checks.first_mismatch);
    REQUIRE(live.checks.mismatches == 0);
    sum.checked += live.checks.checked;
    sum.pages += live.checks.pages;
    sum.undelivered += live.checks.undelivered;
  }
  INFO(configurations << " configurations, " << sum.checked << " lookups, " << sum.pages << " pages, " << failed_steps
                      << " failed steps, " << sum.undelivered << " rows not delivered");
  REQUIRE(sum.checked >= lookups_wanted);
  REQUIRE(failed_steps > 0);
  REQUIRE(sum.undelivered < sum.checked / 20);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (const auto& name : disk_source_names()) REQUIRE(seen[name] > 0);
  for (const auto& name : directory_policies()) REQUIRE(seen[name] > 0);
#endif
}
