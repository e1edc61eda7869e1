// Replacement policies against slow, obvious models, through the directory that uses them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "platforms/error.hpp"
#include "tests/allocations.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/slow_policies.hpp"
#include "tier/directory.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

// A directory and the lists of one step.
struct Cache {
  std::unique_ptr<Directory> directory;
  std::vector<std::uint32_t> at;
  std::vector<Descriptor> descriptors;
  std::vector<Miss> misses;
  std::vector<Reuse> reuses;

  ResolveCounts resolve(const std::vector<std::uint32_t>& lookups) {
    at.resize(lookups.size());
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::uint32_t>(i);
    descriptors.assign(lookups.size(), Descriptor::zero());
    misses.clear();
    reuses.clear();
    misses.reserve(lookups.size());
    reuses.reserve(lookups.size());
    directory->begin_step();
    return directory->resolve(lookups, at, descriptors, misses, reuses);
  }
  std::set<std::uint32_t> content() const {
    std::set<std::uint32_t> rows;
    for (std::uint32_t s = 0; s < directory->reserved(); ++s)
      if (const auto row = directory->row_of(s); row != UINT32_MAX) {
        REQUIRE(directory->slot_of(row) == s);
        rows.insert(row);
      }
    REQUIRE(rows.size() == directory->occupied());
    return rows;
  }
};

using Draw = std::function<std::uint32_t(std::mt19937_64&)>;

// Few rows asked for often, as tokens are: row r has weight 1 / (r + 1)^0.9, and rows are scattered.
Draw zipf(std::uint32_t rows) {
  std::vector<double> sums(rows);
  double sum = 0;
  for (std::uint32_t r = 0; r < rows; ++r) sums[r] = sum += std::pow(r + 1.0, -0.9);
  return [sums, rows](std::mt19937_64& random) {
    const double at = std::uniform_real_distribution<double>(0, sums.back())(random);
    const auto rank = static_cast<std::uint64_t>(std::lower_bound(sums.begin(), sums.end(), at) - sums.begin());
    return static_cast<std::uint32_t>(rank * 7919 % rows);
  };
}

std::vector<std::pair<std::string, Draw>> streams(std::uint32_t rows) {
  auto next = std::make_shared<std::uint32_t>(0);
  return {
      {"even", [rows](std::mt19937_64& random) { return static_cast<std::uint32_t>(random() % rows); }},
      {"zipf", zipf(rows)},
      // Scans with a few hot rows between them.
      {"scan",
       [rows, next](std::mt19937_64& random) {
         if (random() % 3 == 0) return static_cast<std::uint32_t>(random() % 10);
         *next = (*next + 1) % rows;
         return *next;
       }},
  };
}

struct Totals {
  std::uint64_t hits = 0, evictions = 0, failed = 0;
};

// One step of both; a failed row does not arrive. `slots` is the size of now.
void step_both(Cache& cache, SlowPolicy& model, std::size_t slots, const std::vector<std::uint32_t>& lookups,
               const std::function<bool()>& fails, Totals& totals) {
  const ResolveCounts counts = cache.resolve(lookups);
  totals.hits += counts.hits;
  totals.evictions += counts.evictions;

  model.begin_step();
  std::vector<std::uint32_t> fresh;
  std::uint32_t hits = 0;
  for (const auto row : lookups)
    if (model.holds(row)) {
      model.hit(row);
      ++hits;
    } else if (std::find(fresh.begin(), fresh.end(), row) == fresh.end()) {
      fresh.push_back(row);
    }
  const std::size_t empty = std::min(fresh.size(), slots - model.size());
  std::vector<bool> placed(fresh.size(), true);
  for (std::size_t f = empty; f < fresh.size(); ++f) placed[f] = model.evict();
  for (std::size_t f = 0; f < empty; ++f) model.use_empty();

  REQUIRE(counts.hits == hits);
  REQUIRE(cache.misses.size() == fresh.size());
  for (std::size_t f = 0; f < fresh.size(); ++f) {
    REQUIRE(cache.misses[f].row == fresh[f]);
    REQUIRE((cache.misses[f].slot != no_slot) == placed[f]);
    const bool ok = !fails();
    cache.directory->settle(cache.misses[f], ok);
    totals.failed += !ok;
    if (placed[f] && ok) model.insert(fresh[f]);
    if (placed[f] && !ok) model.fail();
  }
  REQUIRE(cache.content() == model.content());
}

const std::vector<std::string> evicting = {"clock", "lru", "s3fifo", "sieve"};

}  // namespace

TEST_CASE("each policy keeps the rows that its slow model keeps", "[policies]") {
  constexpr std::uint32_t rows = 600;
  for (const std::string& policy : evicting)
    for (const auto& [name, draw] : streams(rows))
      for (const std::uint32_t slots : {1u, 2u, 3u, 7u, 10u, 64u, 100u, 400u}) {
        INFO(policy << " " << name << " " << slots);
        std::mt19937_64 random(slots);
        Cache cache{Directory::make(policy, rows, slots), {}, {}, {}, {}};
        const auto model = slow_policy(policy, slots, slots);
        Totals totals;
        for (int step = 1; step <= 150; ++step) {
          std::vector<std::uint32_t> lookups(1 + random() % 60);
          for (auto& row : lookups) row = draw(random);
          step_both(
              cache, *model, slots, lookups, [&] { return step % 3 == 0 && random() % 6 == 0; }, totals);
        }
        REQUIRE(totals.evictions > 0);
        REQUIRE(totals.failed > 0);
        if (slots >= 7) REQUIRE(totals.hits > 0);
      }
}

TEST_CASE("each policy resized at random keeps the rows that its slow model keeps", "[policies]") {
  constexpr std::uint32_t rows = 500, reserved = 150;
  for (const std::string& policy : evicting)
    for (const auto& [name, draw] : streams(rows)) {
      INFO(policy << " " << name);
      std::mt19937_64 random(4);
      std::size_t slots = 60;
      Cache cache{Directory::make(policy, rows, slots, reserved), {}, {}, {}, {}};
      const auto model = slow_policy(policy, slots, reserved);
      Totals totals;
      for (int step = 1; step <= 400; ++step) {
        if (step % 9 == 0) {
          slots = step % 27 == 0 ? random() % 4 : random() % (reserved + 1);
          const auto before = cache.content();
          cache.directory->resize(slots);
          model->resize(slots);
          const auto after = cache.content();
          REQUIRE(cache.directory->slots() == slots);
          REQUIRE(after == model->content());
          REQUIRE(after.size() == std::min(before.size(), slots));
          REQUIRE(std::includes(before.begin(), before.end(), after.begin(), after.end()));
        }
        std::vector<std::uint32_t> lookups(1 + random() % 50);
        for (auto& row : lookups) row = draw(random);
        step_both(
            cache, *model, slots, lookups, [&] { return step % 4 == 0 && random() % 5 == 0; }, totals);
      }
      REQUIRE(totals.hits > 0);
      REQUIRE(totals.evictions > 0);
    }
}

TEST_CASE("a shrunken cache is as good as a fresh one of its size", "[policies]") {
  constexpr std::uint32_t rows = 20'000, large = 4000, small = 500;
  const Draw draw = zipf(rows);
  for (const std::string& policy : evicting) {
    INFO(policy);
    std::mt19937_64 random(8);
    Cache shrunken{Directory::make(policy, rows, large), {}, {}, {}, {}};
    Cache fresh{Directory::make(policy, rows, small), {}, {}, {}, {}};
    std::uint64_t hits_shrunken = 0, hits_fresh = 0, first = 0, lookups_first = 0;
    std::vector<std::uint32_t> lookups(100);
    for (int step = 0; step < 700; ++step) {
      for (auto& row : lookups) row = draw(random);
      if (step == 400) shrunken.directory->resize(small);
      const auto a = shrunken.resolve(lookups), b = fresh.resolve(lookups);
      for (auto* cache : {&shrunken, &fresh})
        for (const auto& miss : cache->misses) cache->directory->settle(miss, true);
      if (step < 400) continue;
      hits_shrunken += a.hits;
      hits_fresh += b.hits;
      if (step < 410) {
        first += a.hits;
        lookups_first += lookups.size();
      }
    }
    const double lookups_after = 300.0 * 100;
    const double rate = static_cast<double>(hits_shrunken) / lookups_after;
    const double fresh_rate = static_cast<double>(hits_fresh) / lookups_after;
    REQUIRE(rate > fresh_rate - 0.03);
    REQUIRE(rate < fresh_rate + 0.04);  // what it learnt while it was large may help it a little
    // At once, not only after a while.
    REQUIRE(static_cast<double>(first) / static_cast<double>(lookups_first) > rate - 0.1);
  }
}

TEST_CASE("a grown cache keeps every row in its slot", "[policies]") {
  for (const auto& policy : directory_policies()) {
    INFO(policy);
    Cache cache{Directory::make(policy, 1000, 50, 90), {}, {}, {}, {}};
    std::vector<std::uint32_t> rows(90), filled;
    for (std::uint32_t r = 0; r < 90; ++r) rows[r] = 900 - 10 * r;
    cache.directory->hold(rows, filled);
    REQUIRE(filled.size() == 50);
    for (std::uint32_t s = 0; s < 50; ++s) REQUIRE(cache.directory->row_of(s) == rows[s]);
    cache.directory->resize(90);
    for (std::uint32_t s = 0; s < 50; ++s) REQUIRE(cache.directory->row_of(s) == rows[s]);
    filled.clear();
    cache.directory->hold(rows, filled);
    REQUIRE(filled.size() == 40);
    REQUIRE(cache.content().size() == 90);
    REQUIRE_THROWS_AS(cache.directory->resize(91), UsageError);
    cache.directory->resize(0);
    REQUIRE(cache.content().empty());
    REQUIRE(cache.resolve({900, 890, 900}).hits == 0);
    for (const auto& miss : cache.misses) {
      REQUIRE(miss.slot == no_slot);
      cache.directory->settle(miss, true);
    }
    REQUIRE(cache.content().empty());
  }
}

TEST_CASE("static holds its rows and no others", "[policies]") {
  std::mt19937_64 random(2);
  Cache cache{Directory::make("static", 400, 30, 60), {}, {}, {}, {}};
  std::vector<std::uint32_t> hot(60), filled;
  for (std::uint32_t r = 0; r < 60; ++r) hot[r] = 3 * r + 1;
  cache.directory->hold(hot, filled);
  std::size_t slots = 30;
  for (int step = 0; step < 200; ++step) {
    if (step % 20 == 19) {
      slots = random() % 61;
      cache.directory->resize(slots);
      filled.clear();
      cache.directory->hold(hot, filled);
    }
    std::vector<std::uint32_t> lookups(1 + random() % 50);
    for (auto& row : lookups) row = static_cast<std::uint32_t>(random() % 400);
    const ResolveCounts counts = cache.resolve(lookups);
    const std::set<std::uint32_t> held(hot.begin(), hot.begin() + static_cast<std::ptrdiff_t>(slots));
    REQUIRE(counts.hits == std::count_if(lookups.begin(), lookups.end(), [&](auto row) { return held.contains(row); }));
    REQUIRE(counts.evictions == 0);
    for (const auto& miss : cache.misses) {
      REQUIRE(miss.slot == no_slot);
      cache.directory->settle(miss, random() % 3 != 0);
    }
    REQUIRE(cache.content() == held);
  }
}

TEST_CASE("no policy gives away a slot that the step has touched, and failed rows come back as free slots", "[policies]") {
  for (const auto& policy : directory_policies()) {
    INFO(policy);
    std::mt19937_64 random(9);
    constexpr std::uint32_t rows = 300, slots = 40;
    Cache cache{Directory::make(policy, rows, slots), {}, {}, {}, {}};
    for (int step = 0; step < 500; ++step) {
      std::vector<std::uint32_t> lookups(1 + random() % 70);
      for (auto& row : lookups) row = static_cast<std::uint32_t>(random() % rows);
      cache.resolve(lookups);
      std::set<std::uint32_t> touched;
      for (const auto& descriptor : cache.descriptors)
        if (descriptor.kind() == LookupKind::hit) touched.insert(descriptor.slot());
      for (const auto& miss : cache.misses)
        if (miss.slot != no_slot) {
          REQUIRE(miss.slot < slots);
          REQUIRE(touched.insert(miss.slot).second);
        }
      for (const auto& miss : cache.misses) cache.directory->settle(miss, random() % 5 != 0);
      cache.content();
    }
  }
}

TEST_CASE("no policy allocates in the steady state", "[policies]") {
  constexpr std::uint32_t rows = 3000;
  const Draw draw = zipf(rows);
  for (const auto& policy : directory_policies()) {
    INFO(policy);
    std::mt19937_64 random(6);
    Cache cache{Directory::make(policy, rows, 300), {}, {}, {}, {}};
    std::vector<std::uint32_t> lookups(200);
    std::size_t allocated = 0;
    for (int step = 0; step < 400; ++step) {
      for (auto& row : lookups) row = draw(random);
      const std::size_t before = allocation_count();
      cache.resolve(lookups);
      for (const auto& miss : cache.misses) cache.directory->settle(miss, true);
      if (step >= 200) allocated += allocation_count() - before;
    }
    REQUIRE(allocated == 0);
  }
}
