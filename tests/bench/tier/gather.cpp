// Gather of one layer and step on the cpu device against plain copies of the same rows and the same output.
//
// Load: B = 128, rank 3 of 4 of DeepSeek-V4.1: 768 of 3,072 rows are owned, each once from the cache. Limit: memcpy of the
// records' bytes out of the same random slots, and memset of the whole output.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "tier/gather.hpp"

namespace {

using namespace slacktier;

struct Load {
  TableSpec spec = load_table_spec("engram_v41");
  std::vector<std::byte> cache_bytes;
  std::vector<Descriptor> descriptors;
  std::vector<std::uint16_t> out;
  std::vector<std::byte> copied;
  GatherArgs args;

  Load() {
    constexpr std::uint32_t slots = 500'000, tokens = 128;
    std::mt19937_64 random(3);
    args.cache = cache_layout(spec);
    cache_bytes.resize(std::size_t{slots} * (args.cache.value_bytes + args.cache.scale_bytes));
    for (auto& byte : cache_bytes) byte = static_cast<std::byte>(random());
    args.cache.values = cache_bytes.data();
    args.cache.scales = cache_bytes.data() + std::size_t{slots} * args.cache.value_bytes;
    // Scales as checkpoints have them: near 127.
    for (std::size_t i = 0; i < std::size_t{slots} * args.cache.scale_bytes; ++i)
      args.cache.scales[i] = static_cast<std::byte>(117 + random() % 21);
    args.lookups = tokens * spec.rows_per_token();
    descriptors.resize(args.lookups);
    for (std::uint32_t i = 0; i < args.lookups; ++i)
      if (i % 24 >= 18) descriptors[i] = Descriptor::hit(static_cast<std::uint32_t>(random() % slots));
    out.resize(std::size_t{args.lookups} * spec.row_values);
    copied.resize(out.size() * 2);
    args.descriptors = descriptors.data();
    args.out = out.data();
    args.row_values = spec.row_values;
    args.row_bytes = spec.row_bytes;
    args.format = spec.format;
  }
};

Load& load() {
  static Load one;
  return one;
}

void gather(benchmark::State& state) {
  Load& l = load();
  void (*run)(void*, const void*) = nullptr;
  for (const auto& image : tier_modules())
    if (image.backend == "cpu")
      for (const auto& kernel : image.kernels)
        if (kernel.name == "tier.gather") run = kernel.run;
  for (auto _ : state) {
    run(nullptr, &l.args);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(gather)->Unit(benchmark::kMicrosecond);

void copy_limit(benchmark::State& state) {
  Load& l = load();
  for (auto _ : state) {
    std::memset(l.copied.data(), 0, l.copied.size());
    for (std::uint32_t i = 0; i < l.args.lookups; ++i)
      if (l.descriptors[i].kind() == LookupKind::hit)
        std::memcpy(l.copied.data() + std::size_t{i} * 512, l.args.cache.values + std::size_t{l.descriptors[i].slot()} * 256,
                    256);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(copy_limit)->Unit(benchmark::kMicrosecond);

}  // namespace
