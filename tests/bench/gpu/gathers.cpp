// The tier's kernels against what only moves the same bytes.
#include "tests/bench/gpu/bench.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {

void bench_gathers(Device& device, bool quick, const std::string& peer) {
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
  base.table = bench.host_bytes(std::size_t{table_rows} * spec.row_bytes, random);
  base.out = bench.device_bytes(std::size_t{lookups} * 1024);
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
  const auto rows = [&](const std::byte* from, const std::uint64_t* offsets, std::uint32_t row_bytes,
                        std::string_view kernel = "limit.rows") {
    return bench.time(sets, [&](Stream& stream, std::uint32_t i) {
      RowsArgs args{from, offsets + std::size_t{i} * lookups, static_cast<std::byte*>(base.out), lookups, row_bytes, 512};
      stream.launch(kernel, args);
    });
  };

  print("an empty kernel, one after the other in a graph",
        bench.time(sets, [](Stream& stream, std::uint32_t) { stream.launch("limit.nothing", NothingArgs{}); }));
  const Descriptor* hits_on_host = bench.mapped(hits);
  const Descriptor* hits_on_device = bench.on_device(hits);
  const auto copy = [&](const Descriptor* words, const std::vector<std::string>& kernels) {
    double best = 0;
    for (const std::string& kernel : kernels) {
      const double us = bench.time(sets, [&](Stream& stream, std::uint32_t i) {
        const std::size_t room = std::size_t{slots} * 256 - std::size_t{lookups} * 264;
        CopyArgs args{base.cache.values + std::size_t{i} * lookups * 264 % room / 16 * 16,
                      static_cast<std::byte*>(base.out),
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
  const std::vector<std::string> plain_copies = {"limit.copy", "limit.copy.1024"};
  const double plain = copy(nullptr, plain_copies), limit = copy(hits_on_host, plain_copies),
               near_limit = copy(hits_on_device, plain_copies);
  print("plain copy of the bytes of 3,072 rows: 811 KB read, 1,573 KB written", plain);
  print("the same and 24.6 KB of descriptors in device memory", near_limit);
  print("the same and 24.6 KB of descriptors in host memory: the limit", limit);
  const double hit_rows = rows(base.cache.values, bench.on_device(hit_offsets), 256);
  print("copy of 3,072 random rows of 256 B in device memory", hit_rows, "the plain copy", plain);
  print("the same, where the rows are read in host memory first: no gather of these descriptors is faster",
        rows(base.cache.values, bench.mapped(hit_offsets), 256, "limit.chain"), "the limit", limit);
  print("the limit, its launch overlapped with the kernel before it", copy(hits_on_host, {"limit.copy.early"}), "the limit",
        limit);
  print("gather of 3,072 hits", gather(hits_on_host), "the limit", limit);
  print("gather of 3,072 hits, descriptors in device memory", gather(hits_on_device), "that limit", near_limit);
  print("gather of 3,072 zero rows", gather(bench.mapped(std::vector<Descriptor>(sets * lookups))), "the limit", limit);
  // Other ways to write it, each first put to what the tier's own delivers.
  std::vector<Descriptor> mixed;
  for (std::uint32_t i = 0; i < lookups; ++i)
    mixed.push_back(i % 7 == 0 ? Descriptor::zero() : i % 7 == 1 ? misses[i] : i % 7 == 2 ? resident[i] : hits[i]);
  GatherArgs check = base;
  check.descriptors = bench.mapped(mixed);
  const auto delivered = [&](std::string_view kernel) {
    bench.stream().fill(base.out, 0xEE, std::size_t{lookups} * 512);
    bench.stream().launch(kernel, check);
    return bench.fetch(static_cast<const std::uint16_t*>(base.out), std::size_t{lookups} * 256);
  };
  const auto expected = delivered("tier.gather");
  for (const ShapeName& shape : gather_shapes()) {
    if (delivered(shape.kernel) != expected) throw CheckFailed(fmt::format("{} delivers other rows", shape.kernel));
    const double host = gather(hits_on_host, shape.kernel), device_us = gather(hits_on_device, shape.kernel);
    fmt::print("  {:<32} {:6.2f} us ({:.2f} x the limit), descriptors in device memory {:6.2f} us\n", shape.kernel, host,
               host / limit, device_us);
  }
  // As a step has it: an open gate, its stamp, the gather. `part` without the gather is what the others cost.
  const auto signals = device.allocate_host(sizeof(Signal));
  auto& signal = *new (signals->host()) Signal;
  signal.word.store(1);
  const auto stamp = device.allocate_host(8);
  const auto behind_gate = [&](std::string_view kernel) {
    return bench.time(sets, [&](Stream& stream, std::uint32_t i) {
      stream.await(signal);
      stream.timestamp(static_cast<std::int64_t*>(stamp->host()));
      if (kernel.empty()) return;
      GatherArgs args = base;
      args.descriptors = hits_on_host + std::size_t{i} * lookups;
      stream.launch(kernel, args);
    });
  };
  const double gate = behind_gate("");
  print("an open gate and its stamp", gate);
  for (const char* kernel :
       {"tier.gather", "rows.8.shared.packed", "rows.8.shared.packed.early", "rows.16.half.shared.packed.early"})
    print(fmt::format("the same and {} of 3,072 hits", kernel), behind_gate(kernel), "the gate", gate);
  base.output = OutputFormat::fp32;
  print("gather of 3,072 hits as FP32", gather(hits_on_host));
  base.output = OutputFormat::bf16;

  const double page_rows = rows(base.pool, bench.on_device(page_offsets), 264);
  print("zero-copy limit: 3,072 random records of 3,072 pool pages", page_rows);
  print("gather of 3,072 misses from pool pages", gather(bench.mapped(misses)), "the limit", page_rows);
  print("gather of 3,072 misses from pool pages, each filled into a slot", gather(bench.mapped(fills)), "the limit",
        page_rows);
  const double table_rows_us = rows(base.table, bench.on_device(table_offsets), 264);
  print(fmt::format("zero-copy limit: 3,072 random records of {} million in host memory", table_rows / 1'000'000),
        table_rows_us);
  print("gather of 3,072 rows of the host table", gather(bench.mapped(resident)), "the limit", table_rows_us);

  // Tables that stay on GPUs: rows of 264 bytes, which begin at multiples of 8.
  const std::uint32_t near_rows = quick ? 20'000 : 2'000'000;
  std::vector<Descriptor> near;
  std::vector<std::uint64_t> near_offsets;
  for (std::uint32_t i = 0; i < sets * lookups; ++i) {
    const auto row = static_cast<std::uint32_t>(random() % near_rows);
    near.push_back(Descriptor::resident(row));
    near_offsets.push_back(std::uint64_t{row} * 264);
  }
  const Descriptor* near_rows_on_host = bench.mapped(near);
  const std::uint64_t* near_places = bench.on_device(near_offsets);
  const auto near_table = [&](const std::string& where, std::byte* table) {
    const double copied = rows(table, near_places, 264);
    print(fmt::format("copy of 3,072 random records in {}", where), copied);
    base.table = table;
    print(fmt::format("gather of 3,072 rows of a table in {}", where), gather(near_rows_on_host), "that copy", copied);
  };
  near_table("device memory", bench.device_bytes(std::size_t{near_rows} * 264, random, 128, 10));
  if (!peer.empty()) {
    const auto far = device.allocate_peer(peer, std::size_t{near_rows} * 264);
    bench.stream().copy(far->device(), base.table, std::size_t{near_rows} * 264);
    bench.stream().synchronize();
    near_table("the memory of " + peer, static_cast<std::byte*>(far->device()));
  }

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

}  // namespace slacktier
