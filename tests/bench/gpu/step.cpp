// What a step pays for a tier that has all its rows in the cache.
#include "tests/bench/gpu/bench.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tier/image.hpp"

namespace slacktier {

void bench_step(Device& device, const std::string& folder, bool quick) {
  const TableSpec spec = load_table_spec("engram_v41");
  constexpr std::uint32_t tokens = 128, ranks = 4, rank = 3;
  StageOptions stage;
  stage.disks = {folder + "/bench_gpu.image"};
  stage.ranks = ranks;
  stage.only_ranks = {rank};
  stage.max_bytes = std::uint64_t{128} << 20;
  stage_image(spec, stage);
  const ImageHeader header = read_image_header(stage.disks);
  TierOptions options;
  options.ranks = ranks;
  options.rank = rank;
  options.max_tokens = tokens;
  options.geometry = make_page_geometry(4096, spec.row_bytes);
  for (const auto& layer : spec.layers) {
    options.folds.push_back({header.segment(layer.layer, rank).stored_pages});
    LayerSetup setup;
    setup.source = "uring";
    setup.disks = stage.disks;
    setup.cache_rows = 100'000;
    options.layers.push_back(setup);
  }
  Tier tier(device, spec, options);
  constexpr int layers = 40;
  constexpr Nanos layer_time = 735'000;
  const auto with = device.create_stream("with"), without = device.create_stream("without");
  const auto stamps = device.allocate_host(16);
  auto* at = static_cast<std::int64_t*>(stamps->host());
  const auto enqueue = [&] {
    tier.enqueue_begin(*with);
    for (int k = 0; k < layers; ++k) {
      for (std::size_t l = 0; l < spec.layers.size(); ++l)
        if (spec.layers[l].layer == k) tier.enqueue_layer(*with, l);
      with->compute(layer_time);
    }
    tier.enqueue_end(*with);
  };
  device.begin_capture(*with);
  enqueue();
  const auto graph = device.end_capture(*with);
  device.begin_capture(*without);
  without->timestamp(at);
  for (int k = 0; k < layers; ++k) without->compute(layer_time);
  without->timestamp(at + 1);
  const auto bare = device.end_capture(*without);
  fmt::print("graph with the tier: {} operations, {} host functions; without: {} operations\n", graph->operations(),
             graph->host_functions(), bare->operations());

  std::mt19937_64 random(9);
  std::vector<std::uint32_t> context(tokens * static_cast<std::size_t>(spec.max_ngram));
  for (auto& id : context) id = static_cast<std::uint32_t>(random() % spec.vocabulary);
  const std::vector<std::uint8_t> active(tokens, 1);
  std::vector<double> step_with, step_without, indices;
  std::vector<std::vector<double>> resolved(spec.layers.size()), stalls(spec.layers.size());
  std::uint64_t misses = 0;
  CheckReport checks;
  for (int s = 0; s < (quick ? 12 : 120); ++s) {
    tier.begin_step(context, active);
    graph->launch(*with);
    with->synchronize();
    const StepReport& report = tier.finish_step();
    if (s == 0 || s == 5) tier.check(checks);
    bare->launch(*without);
    without->synchronize();
    if (s < 3) continue;  // the first reads its rows
    step_with.push_back(static_cast<double>(report.step) / 1e3);
    step_without.push_back(static_cast<double>(at[1] - at[0]) / 1e3);
    indices.push_back(static_cast<double>(report.indices) / 1e3);
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const LayerReport& layer = report.layers[l];
      misses += layer.counts.misses;
      resolved[l].push_back(static_cast<double>(layer.resolve_end) / 1e3);
      stalls[l].push_back(static_cast<double>(layer.stall) / 1e3);
      if (s == 5)
        fmt::print("layer {}: gate passed at {:.1f} us; {} hits of {} owned\n", spec.layers[l].layer,
                   static_cast<double>(layer.opened) / 1e3, layer.counts.hits, layer.counts.owned);
    }
  }
  const auto spread = [](std::vector<double>& samples) {
    std::sort(samples.begin(), samples.end());
    return fmt::format("{:.1f} us (from {:.1f} to {:.1f}, nine in ten below {:.1f})", samples[samples.size() / 2],
                       samples.front(), samples.back(), samples[samples.size() * 9 / 10]);
  };
  fmt::print("indices seen by the worker, from t = 0: {}\n", spread(indices));
  for (std::size_t l = 0; l < spec.layers.size(); ++l)
    fmt::print("layer {}: resolved at {}; at the gate for {}\n", spec.layers[l].layer, spread(resolved[l]),
               spread(stalls[l]));
  std::sort(step_with.begin(), step_with.end());
  std::sort(step_without.begin(), step_without.end());
  const double a = step_with[step_with.size() / 2], b = step_without[step_without.size() / 2];
  fmt::print(
      "step of {} layers at 100% hits: {:.1f} us with the tier, {:.1f} us without: {:+.3f}% (medians of {} steps; {} "
      "misses, {} of {} rows wrong)\n",
      layers, a, b, 100 * (a / b - 1), step_with.size(), misses, checks.mismatches, checks.checked);

  // The same without graphs: every operation queued by the calling thread.
  std::vector<double> eager_with, eager_without;
  for (int s = 0; s < (quick ? 6 : 60); ++s) {
    tier.begin_step(context, active);
    enqueue();
    with->synchronize();
    const StepReport& report = tier.finish_step();
    without->timestamp(at);
    for (int k = 0; k < layers; ++k) without->compute(layer_time);
    without->timestamp(at + 1);
    without->synchronize();
    if (s < 3) continue;
    eager_with.push_back(static_cast<double>(report.step) / 1e3);
    eager_without.push_back(static_cast<double>(at[1] - at[0]) / 1e3);
  }
  std::sort(eager_with.begin(), eager_with.end());
  std::sort(eager_without.begin(), eager_without.end());
  const double c = eager_with[eager_with.size() / 2], d = eager_without[eager_without.size() / 2];
  fmt::print("the same without graphs: {:.1f} us with the tier, {:.1f} us without: {:+.3f}%\n", c, d, 100 * (c / d - 1));
}

}  // namespace slacktier
