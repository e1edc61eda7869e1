// Resolve of one step against the memory's limit, in one process and by turns.
//
// Load: B = 128 tokens, DeepSeek-V4.1 geometry, rank 3 of 4 contiguous, both layers: 1,536 owned lookups of 6,144;
// directories of 96 M rows each, caches of 0.5 M rows each, full; 85% of the lookups hit rows drawn evenly from the cache
// (worse than real traffic, which is skewed), the rest are random absent rows. Indices are new in each call and the CPU's
// caches are evicted before it.
//
// Limit: the same number of random reads of the directories, prefetched, on the same pages. Counted are the accesses that
// resolve cannot do without and cannot order: each lookup's entry, which takes the mark of a hit, too, and each eviction's
// write. x_limit is resolve's time over that limit; x_lookups is over the limit of the lookups' entries alone. All else that
// resolve does (ownership, page numbers and buffers, choice of victims, descriptors) is in its time.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <numeric>
#include <random>
#include <unordered_map>

#include "reports/averages.hpp"
#include "tier/hash.hpp"
#include "tier/step.hpp"

namespace {

using namespace slacktier;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t tokens = 128, columns = 24;
constexpr std::uint64_t slots = 500'000;

// As a test, which only looks whether all of it still runs.
bool brief() { return std::getenv("SLACKTIER_BENCH_BRIEF") != nullptr; }

double seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

// Twice the last-level cache, written so that the lines are owned.
void evict_caches() {
  static std::vector<std::uint64_t> sweep(std::max(2 * std::max(::sysconf(_SC_LEVEL3_CACHE_SIZE), 0L), 64L << 20) / 8);
  for (std::size_t i = 0; i < sweep.size(); i += 8) ++sweep[i];
  benchmark::ClobberMemory();
}

struct Rank {
  TableSpec spec = load_table_spec("engram_v41");
  std::vector<Shard> shards;
  std::vector<std::unique_ptr<LayerCore>> cores;
  std::mt19937_64 random{5};
  std::vector<std::vector<std::uint32_t>> rows;   // [layer][tokens * columns]
  std::vector<std::vector<std::uint32_t>> owned;  // local rows of the owned lookups
  std::uint64_t epoch = 0;

  Rank() : rows(2), owned(2) {
    for (std::size_t l = 0; l < 2; ++l) {
      shards.push_back(make_shard(spec, l, ShardMap::contiguous, 4, 3));
      LayerCoreOptions options;
      options.geometry = make_page_geometry(4096, spec.row_bytes);
      options.shard = shards[l];
      options.fold.stored_pages = options.geometry.pages(shards[l].rows);
      options.cache_rows = slots;
      options.max_lookups = tokens * columns;
      options.first_buffer = static_cast<std::uint32_t>(l) * 4096;
      options.buffers = 4096;
      cores.push_back(std::make_unique<LayerCore>(options));
    }
    // Full caches: random rows until every slot holds one.
    std::vector<std::uint32_t> filled;
    for (std::size_t l = 0; l < 2; ++l)
      while (cores[l]->directory()->occupied() < slots) {
        draw(l, 0.0);
        cores[l]->advance(rows[l], filled);
        filled.clear();
      }
    for (int i = 0; i < (brief() ? 20 : 2000); ++i) step(0.85);  // reference bits in their steady state
  }

  // Columns of this rank get a cached row of their own range with probability hit_rate, else any row of the range; other
  // columns get rows of other ranks.
  void draw(std::size_t l, double hit_rate) {
    rows[l].resize(tokens * columns);
    owned[l].clear();
    const Shard& shard = shards[l];
    const Directory& directory = *cores[l]->directory();
    const auto& offsets = spec.layers[l].head_offset;
    std::uniform_real_distribution<double> uniform;
    for (std::uint32_t t = 0; t < tokens; ++t)
      for (std::uint32_t c = 0; c < columns; ++c) {
        std::uint32_t& row = rows[l][t * columns + c];
        if (c < 18) {
          row = static_cast<std::uint32_t>(offsets[c] + random() % 1000);
          continue;
        }
        const std::uint32_t width = shard.last[c] - shard.first[c];
        row = shard.first[c] + static_cast<std::uint32_t>(random() % width);
        if (uniform(random) < hit_rate)
          for (std::uint32_t candidate = UINT32_MAX;;) {
            const std::uint32_t local = directory.row_of(static_cast<std::uint32_t>(random() % slots));
            if (local != UINT32_MAX) candidate = static_cast<std::uint32_t>(shard.global_row(local));
            if (candidate - shard.first[c] >= width) continue;
            row = candidate;
            break;
          }
        owned[l].push_back(row - shard.first[c] + shard.local[c]);
      }
  }
  void draw_step(double hit_rate) {
    for (std::size_t l = 0; l < 2; ++l) draw(l, hit_rate);
  }

  void settle(std::size_t l) {
    static const std::vector<PageFault> fine(tokens * columns, PageFault::none);
    if (cores[l]->in_flight()) cores[l]->on_pages(epoch, fine);
    cores[l]->settle();
  }
  void step(double hit_rate) {
    ++epoch;
    draw_step(hit_rate);
    for (std::size_t l = 0; l < 2; ++l) {
      cores[l]->on_indices(epoch, rows[l], {});
      settle(l);
    }
  }
};

Rank& rank() {
  static Rank one;
  return one;
}

// The reference: random reads of two maps of the directories' size and kind of pages, nothing else.
struct Maps {
  std::vector<HostMemory> memory;
  Maps() {
    for (std::size_t l = 0; l < 2; ++l) {
      memory.emplace_back(rank().shards[l].rows * 4);
      std::memset(memory.back().data(), 1, memory.back().bytes());
    }
  }
  // Time of one pass over the lookups of both layers.
  double read(const std::vector<std::vector<std::uint32_t>>& lookups) const {
    const auto begin = Clock::now();
    std::uint32_t sum = 0;
    for (std::size_t l = 0; l < 2; ++l) {
      const auto* map = static_cast<const std::uint32_t*>(memory[l].data());
      const auto& at = lookups[l];
      constexpr std::size_t ahead = 32;
      for (std::size_t i = 0; i < std::min(ahead, at.size()); ++i) __builtin_prefetch(&map[at[i]]);
      for (std::size_t i = 0; i < at.size(); ++i) {
        if (i + ahead < at.size()) __builtin_prefetch(&map[at[i + ahead]]);
        sum += map[at[i]];
      }
    }
    benchmark::DoNotOptimize(sum);
    return seconds(begin, Clock::now());
  }
};

void resolve_step(benchmark::State& state) {
  Rank& r = rank();
  static const Maps maps;
  std::vector<double> resolve, settle, lookups, limit;
  std::uint64_t hits = 0, owned = 0, evictions = 0;
  std::vector<std::vector<std::uint32_t>> counted(2);
  for (auto _ : state) {
    ++r.epoch;
    r.draw_step(0.85);
    for (std::size_t l = 0; l < 2; ++l) {
      counted[l] = r.owned[l];
      const LayerCounts& last = r.cores[l]->counts();  // of the step before: the same load
      for (std::uint32_t more = last.evictions; more > 0; --more)
        counted[l].push_back(static_cast<std::uint32_t>(r.random() % r.shards[l].rows));
    }
    evict_caches();
    lookups.push_back(maps.read(r.owned));
    evict_caches();
    limit.push_back(maps.read(counted));
    evict_caches();
    const auto t0 = Clock::now();
    for (std::size_t l = 0; l < 2; ++l) r.cores[l]->on_indices(r.epoch, r.rows[l], {});
    const auto t1 = Clock::now();
    for (std::size_t l = 0; l < 2; ++l) r.settle(l);
    const auto t2 = Clock::now();
    state.SetIterationTime(seconds(t0, t1));
    resolve.push_back(seconds(t0, t1));
    settle.push_back(seconds(t1, t2));
    for (std::size_t l = 0; l < 2; ++l) {
      hits += r.cores[l]->counts().hits;
      owned += r.cores[l]->counts().owned;
      evictions += r.cores[l]->counts().evictions;
    }
  }
  const double steps = static_cast<double>(limit.size());
  state.counters["owned"] = static_cast<double>(owned) / steps;
  state.counters["hit_pct"] = 100.0 * static_cast<double>(hits) / static_cast<double>(owned);
  state.counters["evictions"] = static_cast<double>(evictions) / steps;
  state.counters["resolve_us"] = 1e6 * median(resolve);
  state.counters["limit_us"] = 1e6 * median(limit);
  state.counters["settle_us"] = 1e6 * median(settle);
  state.counters["x_limit"] = median(resolve) / median(limit);
  state.counters["x_lookups"] = median(resolve) / median(lookups);
}
BENCHMARK(resolve_step)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(brief() ? 3 : 100);

// The obvious version: a hash map from row to slot, a list in LRU order. Same load, same eviction of caches.
struct Naive {
  std::list<std::uint32_t> order;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> where;
};

void naive_hash_map(benchmark::State& state) {
  Rank& r = rank();
  static std::vector<Naive> layers(2);
  for (std::size_t l = 0; l < 2; ++l)
    if (layers[l].order.empty()) {
      layers[l].where.reserve(slots);
      for (std::uint32_t s = 0; s < slots; ++s)
        if (const auto row = r.cores[l]->directory()->row_of(s); row != UINT32_MAX) {
          layers[l].order.push_back(row);
          layers[l].where[row] = std::prev(layers[l].order.end());
        }
    }
  static const Maps maps;
  std::vector<double> naive, lookups;
  for (auto _ : state) {
    r.draw_step(0.85);
    evict_caches();
    lookups.push_back(maps.read(r.owned));
    evict_caches();
    const auto t0 = Clock::now();
    for (std::size_t l = 0; l < 2; ++l) {
      Naive& layer = layers[l];
      for (std::size_t i = 0; i < r.rows[l].size(); ++i) {
        const std::size_t c = i % columns;
        const Shard& shard = r.shards[l];
        if (r.rows[l][i] < shard.first[c] || r.rows[l][i] >= shard.last[c]) continue;
        const std::uint32_t local = r.rows[l][i] - shard.first[c] + shard.local[c];
        if (const auto found = layer.where.find(local); found != layer.where.end()) {
          layer.order.splice(layer.order.begin(), layer.order, found->second);
        } else {
          layer.where.erase(layer.order.back());
          layer.order.pop_back();
          layer.order.push_front(local);
          layer.where[local] = layer.order.begin();
        }
      }
    }
    const auto t1 = Clock::now();
    state.SetIterationTime(seconds(t0, t1));
    naive.push_back(seconds(t0, t1));
  }
  state.counters["x_lookups"] = median(naive) / median(lookups);
}
BENCHMARK(naive_hash_map)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(brief() ? 3 : 50);

}  // namespace
