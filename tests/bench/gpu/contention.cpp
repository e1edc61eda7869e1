// The gather while another stream's work holds every multiprocessor, as a model's layers do that overlap it.
#include "tests/bench/gpu/bench.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {

void bench_contention(Device& device, bool quick) {
  const DeviceFacts facts = device.facts();
  Bench bench(device, quick);
  const TableSpec spec = load_table_spec("engram_v41");
  constexpr std::uint32_t lookups = 128 * 24;
  const std::uint32_t sets = quick ? 4 : 50, slots = quick ? 20'000 : 2'000'000;
  std::mt19937_64 random(8);
  GatherArgs base;
  base.cache = cache_layout(spec);
  base.cache.values = bench.device_bytes(std::size_t{slots} * base.cache.value_bytes, random, 0, 256);
  base.cache.scales = bench.device_bytes(std::size_t{slots} * base.cache.scale_bytes, random, 117, 21);
  base.pool = bench.host_bytes(std::size_t{lookups} * 4096, random);
  base.out = bench.device_bytes(std::size_t{lookups} * 512);
  base.lookups = lookups;
  base.row_values = spec.row_values;
  base.row_bytes = spec.row_bytes;
  base.page_bytes = 4096;
  base.format = spec.format;
  std::vector<Descriptor> hits, misses;
  for (std::uint32_t i = 0; i < sets * lookups; ++i) {
    hits.push_back(Descriptor::hit(static_cast<std::uint32_t>(random() % slots)));
    misses.push_back(Descriptor::miss(i % lookups, static_cast<std::uint32_t>(random() % 15), no_slot));
  }

  const auto side = device.create_stream("beside");
  const auto fork = device.create_event(), join = device.create_event();
  const auto stamps = device.allocate_host(3 * sizeof(std::int64_t));
  auto* at = static_cast<std::int64_t*>(stamps->host());
  // Microseconds of one gather. `beside`: for so long the other stream works, which must outlast the gathers.
  const auto time = [&](const Descriptor* descriptors, Nanos beside) {
    Stream& main = bench.stream();
    device.begin_capture(main);
    if (beside > 0) {
      main.record(*fork);
      side->wait(*fork);
      side->compute(beside);
      side->timestamp(at + 2);
      side->record(*join);
      main.compute(100'000);  // the other stream's kernel has begun
    }
    main.timestamp(at);
    for (std::uint32_t i = 0; i < sets; ++i) {
      GatherArgs args = base;
      args.descriptors = descriptors + std::size_t{i} * lookups;
      main.launch("tier.gather", args);
    }
    main.timestamp(at + 1);
    if (beside > 0) main.wait(*join);
    const auto graph = device.end_capture(main);
    std::vector<double> samples;
    for (int replay = 0; replay < (quick ? 3 : 40); ++replay) {
      graph->launch(main);
      main.synchronize();
      if (beside > 0 && at[2] < at[1]) throw CheckFailed("the other stream's work ended before the gathers did");
      samples.push_back(static_cast<double>(at[1] - at[0]) / 1e3 / sets);
    }
    std::sort(samples.begin(), samples.end());
    return samples[samples.size() / 2];
  };
  fmt::print("{}; work: {}\n", facts.name, facts.work);
  const auto both = [&](const std::string& what, const Descriptor* descriptors, Nanos one) {
    const double alone = time(descriptors, 0);
    print("gather of 3,072 " + what, alone);
    print("gather of 3,072 " + what + " beside that work", time(descriptors, 300'000 + sets * one), "alone", alone);
  };
  both("hits", bench.mapped(hits), 60'000);
  both("misses from pool pages", bench.mapped(misses), 200'000);
}

}  // namespace slacktier
