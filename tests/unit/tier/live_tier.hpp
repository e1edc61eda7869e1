// A live tier with its decode graph on a device, driven step by step, every row checked.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/tier/small_table.hpp"
#include "tier/tier.hpp"

namespace slacktier::testing {

struct LiveTier {
  static constexpr std::uint32_t tokens = 24;

  Device& device;
  const TableSpec& spec;
  std::vector<std::unique_ptr<ResidentTable>> tables;
  std::unique_ptr<Tier> tier;
  std::unique_ptr<Stream> main;
  std::unique_ptr<Graph> graph;  // null: eager, its operations are queued each step
  std::mt19937_64 random{11};
  std::vector<std::uint32_t> context;
  std::vector<std::uint8_t> active;
  CheckReport checks;

  // options.max_tokens 0: `tokens` of them. `between` may put a double in front of the main stream.
  LiveTier(Device& on, const TableSpec& table, const std::vector<LayerSetup>& layers, TierOptions options = {},
           const std::function<Stream&(Stream&)>& between = {}, bool captured = true)
      : device(on), spec(table) {
    if (options.max_tokens == 0) options.max_tokens = tokens;
    options.layers = layers;
    options.geometry = make_page_geometry(4096, spec.row_bytes);
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const Shard shard = make_shard(spec, l, options.shard_map, options.ranks, options.rank);
      if (options.folds.size() <= l) options.folds.push_back({options.geometry.pages(shard.rows)});
      if (is_resident_source(layers[l].source)) {
        const auto origin = generated_rows(spec, l, shard, 1);
        const std::uint64_t rows = std::min(options.folds[l].stored_pages * options.geometry.rows_per_page, shard.rows);
        tables.push_back(std::make_unique<ResidentTable>(device, spec, *origin, rows, layers[l].source, layers[l].peer));
        options.layers[l].table = tables.back().get();
      }
    }
    tier = std::make_unique<Tier>(device, spec, options);
    main = device.create_stream("model");
    if (captured) {
      device.begin_capture(*main);
      enqueue(between ? between(*main) : *main);
      graph = device.end_capture(*main);
    }
    context.resize(options.max_tokens * static_cast<std::size_t>(spec.max_ngram));
    active.resize(options.max_tokens);
  }

  void enqueue(Stream& stream) {
    tier->enqueue_begin(stream);
    for (int k = 0; k < 4; ++k) {
      for (std::size_t l = 0; l < spec.layers.size(); ++l)
        if (spec.layers[l].layer == k) tier->enqueue_layer(stream, l);
      stream.compute(20'000);
    }
    tier->enqueue_end(stream);
  }
  void draw(std::uint32_t vocabulary = 40) {
    for (auto& id : context) id = static_cast<std::uint32_t>(random() % vocabulary);
    for (auto& flag : active) flag = random() % 8 != 0;
  }
  void launch() {
    tier->begin_step(context, active);
    if (graph)
      graph->launch(*main);
    else
      enqueue(*main);
    main->synchronize();
  }
  const StepReport& step() {
    launch();
    const StepReport& report = tier->finish_step();
    tier->check(checks);
    return report;
  }
};

inline LayerSetup on(const std::string& source, const std::vector<std::string>& disks, std::uint64_t cache_rows,
                     int threads = 1, const std::vector<std::string>& wrappers = {}) {
  LayerSetup setup;
  setup.source = source;
  setup.wrappers = wrappers;
  setup.disks = disks;
  setup.cache_rows = cache_rows;
  setup.threads = threads;
  return setup;
}

}  // namespace slacktier::testing
