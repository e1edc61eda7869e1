// The tier's device side on a GPU, against kernels that only move the same bytes, and what a step pays for the tier.
//
//   bench_gpu [--device cuda:0] [--gate G] [--quick] [--step FOLDER] [--pairs FILE]
//
// Load: B = 128 tokens of DeepSeek-V4.1, all 3,072 rows of a layer from one place. Each figure is the median over replays of
// a graph of launches, each with its own random rows, from a device timestamp before the first to one after the last.
// --step stages a small image in FOLDER and compares graphs of 40 layers, 29.4 ms, with and without a tier that has all rows
// in its cache. --pairs writes the 65,536 BF16 results (scale by scale) for comparison with other libraries.
// Exit status: 0 measured, 77 no GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/bench/gpu/limits.hpp"
#include "tests/kernel_bench.hpp"
#include "tier/tier.hpp"

namespace {

using namespace slacktier;

struct Options {
  std::string device = "cuda:0", gate = "auto", step, pairs;
  bool quick = false;
};

class Bench : public testing::KernelBench {
 public:
  Bench(Device& device, bool quick) : KernelBench(device), stamps_(device.allocate_host(16)), quick_(quick) {
    device.load_module(tier_modules());
    device.load_module(limit_modules());
  }

  std::byte* device_bytes(std::size_t n) {
    buffers_.push_back(device_.allocate_device(n));
    return static_cast<std::byte*>(buffers_.back()->device());
  }
  // Device memory with random bytes from `first` on, `count` of them.
  std::byte* device_bytes(std::size_t n, std::mt19937_64& random, std::uint32_t first, std::uint32_t count) {
    constexpr std::size_t part = std::size_t{8} << 20;
    auto staged = device_.allocate_host(part);
    auto* bytes = static_cast<std::byte*>(staged->host());
    for (std::size_t i = 0; i < part; ++i) bytes[i] = static_cast<std::byte>(first + random() % count);
    std::byte* to = device_bytes(n);
    for (std::size_t at = 0; at < n; at += part) stream_->copy(to + at, staged->host(), std::min(part, n - at));
    stream_->synchronize();
    return to;
  }
  // Host memory, random in its first MiB and then again and again: bytes that are finite as values and common as scales, for
  // records begin anywhere.
  std::byte* host_bytes(std::size_t n, std::mt19937_64& random) {
    buffers_.push_back(device_.allocate_host(n));
    auto* bytes = static_cast<std::byte*>(buffers_.back()->host());
    const std::size_t part = std::min<std::size_t>(n, 1 << 20);
    for (std::size_t i = 0; i < part; ++i) bytes[i] = static_cast<std::byte>(128 + random() % 10);
    for (std::size_t at = part; at < n; at += part) std::memcpy(bytes + at, bytes, std::min(part, n - at));
    return static_cast<std::byte*>(buffers_.back()->device());
  }

  // Microseconds of one launch. `enqueue(i)` queues the i-th.
  double time(std::uint32_t launches, const std::function<void(Stream&, std::uint32_t)>& enqueue) {
    auto* at = static_cast<std::int64_t*>(stamps_->host());
    device_.begin_capture(*stream_);
    stream_->timestamp(at);
    for (std::uint32_t i = 0; i < launches; ++i) enqueue(*stream_, i);
    stream_->timestamp(at + 1);
    const auto graph = device_.end_capture(*stream_);
    std::vector<double> samples;
    for (int replay = 0; replay < (quick_ ? 5 : 60); ++replay) {
      graph->launch(*stream_);
      stream_->synchronize();
      samples.push_back(static_cast<double>(at[1] - at[0]) / 1e3 / launches);
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  }

 private:
  std::unique_ptr<Buffer> stamps_;
  bool quick_;
};

void print(const std::string& what, double us, const std::string& against = "", double limit = 0) {
  if (against.empty())
    fmt::print("{:<66} {:8.2f} us\n", what, us);
  else
    fmt::print("{:<66} {:8.2f} us   {:5.2f} x {}\n", what, us, us / limit, against);
  std::fflush(stdout);
}

void gathers(Device& device, bool quick) {
  Bench bench(device, quick);
  const TableSpec spec = load_table_spec("engram_v41");
  constexpr std::uint32_t lookups = 128 * 24;
  const std::uint32_t sets = quick ? 4 : 100;
  const std::uint32_t slots = quick ? 20'000 : 2'000'000;
  const std::uint32_t pages = lookups;
  const std::uint32_t table_rows = quick ? 50'000 : 40'000'000;
  std::mt19937_64 random(7);

  GatherArgs base;
  base.cache = cache_layout(spec);
  // Values of all kinds, scales as tables have them.
  base.cache.values = bench.device_bytes(std::size_t{slots} * base.cache.value_bytes, random, 0, 256);
  base.cache.scales = bench.device_bytes(std::size_t{slots} * base.cache.scale_bytes, random, 117, 21);
  base.pool = bench.host_bytes(std::size_t{pages} * 4096, random);
  base.host_table = bench.host_bytes(std::size_t{table_rows} * spec.row_bytes, random);
  base.out = reinterpret_cast<std::uint16_t*>(bench.device_bytes(std::size_t{lookups} * 512));
  base.lookups = lookups;
  base.row_values = spec.row_values;
  base.row_bytes = spec.row_bytes;
  base.page_bytes = 4096;
  base.format = spec.format;

  std::vector<Descriptor> hits, misses, fills, resident;
  std::vector<std::uint64_t> hit_offsets, page_offsets, table_offsets;
  for (std::uint32_t i = 0; i < sets * lookups; ++i) {
    const auto slot = static_cast<std::uint32_t>(random() % slots);
    const auto record = static_cast<std::uint32_t>(random() % 15);
    const auto row = static_cast<std::uint32_t>(random() % table_rows);
    const std::uint32_t page = i % pages;
    hits.push_back(Descriptor::hit(slot));
    misses.push_back(Descriptor::miss(page, record, no_slot));
    fills.push_back(Descriptor::miss(page, record, (i * 641u) % slots));
    resident.push_back(Descriptor::resident(row));
    hit_offsets.push_back(std::uint64_t{slot} * 256);
    page_offsets.push_back(std::uint64_t{page} * 4096 + std::uint64_t{record} * 264);
    table_offsets.push_back(std::uint64_t{row} * 264);
  }
  const auto gather = [&](const Descriptor* descriptors, std::string_view kernel = "tier.gather") {
    return bench.time(sets, [&](Stream& stream, std::uint32_t i) {
      GatherArgs args = base;
      args.descriptors = descriptors + std::size_t{i} * lookups;
      stream.launch(kernel, args);
    });
  };
  const auto rows = [&](const std::byte* from, const std::uint64_t* offsets, std::uint32_t row_bytes) {
    return bench.time(sets, [&](Stream& stream, std::uint32_t i) {
      RowsArgs args{from, offsets + std::size_t{i} * lookups, reinterpret_cast<std::byte*>(base.out), lookups, row_bytes,
                    512};
      stream.launch("limit.rows", args);
    });
  };

  print("an empty kernel, one after the other in a graph",
        bench.time(sets, [](Stream& stream, std::uint32_t) { stream.launch("limit.nothing", NothingArgs{}); }));
  const Descriptor* hits_on_host = bench.mapped(hits);
  const Descriptor* hits_on_device = bench.on_device(hits);
  const auto copy = [&](const Descriptor* words) {
    double best = 0;
    for (const char* kernel : {"limit.copy", "limit.copy.1024"}) {
      const double us = bench.time(sets, [&](Stream& stream, std::uint32_t i) {
        const std::size_t room = std::size_t{slots} * 256 - std::size_t{lookups} * 264;
        CopyArgs args{base.cache.values + std::size_t{i} * lookups * 264 % room / 16 * 16,
                      reinterpret_cast<std::byte*>(base.out),
                      words ? &words[std::size_t{i} * lookups].bits : nullptr,
                      lookups * 264,
                      lookups * 512,
                      words ? lookups : 0};
        stream.launch(kernel, args);
      });
      if (best == 0 || us < best) best = us;
    }
    return best;
  };
  const double plain = copy(nullptr), limit = copy(hits_on_host), near_limit = copy(hits_on_device);
  print("plain copy of the bytes of 3,072 rows: 811 KB read, 1,573 KB written", plain);
  print("the same and 24.6 KB of descriptors in device memory", near_limit);
  print("the same and 24.6 KB of descriptors in host memory: the limit", limit);
  const double hit_rows = rows(base.cache.values, bench.on_device(hit_offsets), 256);
  print("copy of 3,072 random rows of 256 B in device memory", hit_rows, "the plain copy", plain);
  print("gather of 3,072 hits", gather(hits_on_host), "the limit", limit);
  print("gather of 3,072 hits, descriptors in device memory", gather(hits_on_device), "that limit", near_limit);
  print("gather of 3,072 zero rows", gather(bench.mapped(std::vector<Descriptor>(sets * lookups))), "the limit", limit);
  for (const ShapeName& shape : gather_shapes()) {
    const double host = gather(hits_on_host, shape.kernel), device_us = gather(hits_on_device, shape.kernel);
    fmt::print("  {:<20} {:6.2f} us, descriptors in device memory {:6.2f} us\n", shape.kernel, host, device_us);
  }

  const double page_rows = rows(base.pool, bench.on_device(page_offsets), 264);
  print("zero-copy limit: 3,072 random records of 3,072 pool pages", page_rows);
  print("gather of 3,072 misses from pool pages", gather(bench.mapped(misses)), "the limit", page_rows);
  print("gather of 3,072 misses from pool pages, each filled into a slot", gather(bench.mapped(fills)), "the limit",
        page_rows);
  const double table_rows_us = rows(base.host_table, bench.on_device(table_offsets), 264);
  print(fmt::format("zero-copy limit: 3,072 random records of {} million in host memory", table_rows / 1'000'000),
        table_rows_us);
  print("gather of 3,072 rows of the host table", gather(bench.mapped(resident)), "the limit", table_rows_us);

  // The hash of a step, all layers.
  const KernelHash kernel = make_hash(spec)->for_kernels();
  std::vector<std::uint32_t> context(128 * static_cast<std::size_t>(spec.max_ngram));
  for (auto& id : context) id = static_cast<std::uint32_t>(random() % spec.vocabulary);
  HashArgs hash;
  hash.parameters = bench.on_device(kernel.parameters);
  hash.context = bench.mapped(context);
  hash.rows = reinterpret_cast<std::uint32_t*>(bench.device_bytes(spec.layers.size() * lookups * 4));
  hash.tokens = 128;
  hash.layers = static_cast<std::uint32_t>(spec.layers.size());
  hash.rows_per_token = spec.rows_per_token();
  print("hash of 128 tokens, both layers",
        bench.time(sets, [&](Stream& stream, std::uint32_t) { stream.launch(kernel.kernel, hash); }));
}

void step_cost(Device& device, const std::string& folder, bool quick) {
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
  device.begin_capture(*with);
  tier.enqueue_begin(*with);
  for (int k = 0; k < layers; ++k) {
    for (std::size_t l = 0; l < spec.layers.size(); ++l)
      if (spec.layers[l].layer == k) tier.enqueue_layer(*with, l);
    with->compute(layer_time);
  }
  tier.enqueue_end(*with);
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
}

void write_pairs(Device& device, const std::string& file) {
  Bench bench(device, true);
  std::vector<std::byte> values, scales;
  std::vector<Descriptor> descriptors;
  for (std::uint32_t scale = 0; scale < 256; ++scale) {
    for (std::uint32_t value = 0; value < 256; ++value) values.push_back(static_cast<std::byte>(value));
    for (int block = 0; block < 8; ++block) scales.push_back(static_cast<std::byte>(scale));
    descriptors.push_back(Descriptor::hit(scale));
  }
  const auto out = device.allocate_host(65536 * 2);
  GatherArgs args;
  args.cache.value_bytes = 256;
  args.cache.scale_bytes = 8;
  args.cache.values = bench.on_device(values);
  args.cache.scales = bench.on_device(scales);
  args.descriptors = bench.mapped(descriptors);
  args.out = static_cast<std::uint16_t*>(out->device());
  args.lookups = 256;
  args.row_values = 256;
  args.row_bytes = 264;
  const auto stream = device.create_stream("pairs");
  stream->launch("tier.gather", args);
  stream->synchronize();
  std::ofstream(file, std::ios::binary).write(static_cast<const char*>(out->host()), 65536 * 2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] {
      if (++i >= argc) throw UsageError(word + " needs a value");
      return std::string(argv[i]);
    };
    if (word == "--device")
      options.device = value();
    else if (word == "--gate")
      options.gate = value();
    else if (word == "--step")
      options.step = value();
    else if (word == "--pairs")
      options.pairs = value();
    else if (word == "--quick")
      options.quick = true;
    else
      throw UsageError("unknown option " + word);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    DeviceOptions device_options;
    device_options.gate = options.gate;
    const auto device = open_device(options.device, device_options);
    const DeviceFacts facts = device->facts();
    fmt::print("{}: {}; gate {}\n", facts.name, facts.detail, facts.gate);
    if (!options.pairs.empty())
      write_pairs(*device, options.pairs);
    else if (!options.step.empty())
      step_cost(*device, options.step, options.quick);
    else
      gathers(*device, options.quick);
    return 0;
  } catch (const EnvironmentError& error) {
    fmt::print("SKIPPED: {}\n", error.what());
    return 77;
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_gpu: error: {}\n", error.what());
    return 1;
  }
}
