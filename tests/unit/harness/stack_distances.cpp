// Stack distances, policies and the optimum against slow, obvious models.
#include "harness/stack_distances.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>

#include "harness/cache_policy.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Steps of different rows, some asked for much more often than others.
std::vector<std::vector<std::uint32_t>> random_steps(std::uint64_t seed, std::uint32_t rows, std::size_t steps,
                                                     std::size_t largest) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<std::uint32_t>> all(steps);
  for (auto& step : all)
    for (std::size_t n = 1 + random() % largest; n > 0; --n) {
      const auto row = static_cast<std::uint32_t>(random() % 2 ? random() % rows : random() % (rows / 8 + 1));
      if (std::find(step.begin(), step.end(), row) == step.end()) step.push_back(row);
    }
  return all;
}

// Dense ids in the order of first lookup.
struct Stream {
  std::vector<std::vector<std::uint32_t>> steps;
  std::vector<std::uint32_t> ids;
  std::uint32_t distinct = 0;
};
Stream dense(std::vector<std::vector<std::uint32_t>> steps) {
  Stream stream;
  std::vector<std::uint32_t> id_of;
  for (auto& step : steps)
    for (auto& row : step) {
      if (row >= id_of.size()) id_of.resize(row + 1, UINT32_MAX);
      if (id_of[row] == UINT32_MAX) id_of[row] = stream.distinct++;
      row = id_of[row];
      stream.ids.push_back(row);
    }
  stream.steps = std::move(steps);
  return stream;
}

std::uint64_t hits_of(CachePolicy& policy, const Stream& stream) {
  std::uint64_t hits = 0;
  std::vector<std::uint8_t> hit;
  for (const auto& step : stream.steps) {
    hit.assign(step.size(), 0);
    policy.step(step, hit);
    hits += static_cast<std::uint64_t>(std::count(hit.begin(), hit.end(), 1));
  }
  return hits;
}

std::uint64_t best_hits_of(const Stream& stream, std::uint32_t capacity) {
  const auto next = next_uses(stream.ids, stream.distinct);
  BestHits best(next, capacity);
  std::uint64_t hits = 0;
  std::vector<std::uint8_t> hit;
  for (const auto& step : stream.steps) {
    hit.assign(step.size(), 0);
    best.step(hit);
    hits += static_cast<std::uint64_t>(std::count(hit.begin(), hit.end(), 1));
  }
  return hits;
}

std::uint64_t lru_hits(const Stream& stream, std::uint32_t capacity) {
  StackDistances stack;
  std::uint64_t hits = 0;
  std::vector<std::uint32_t> distances;
  for (const auto& step : stream.steps) {
    distances.resize(step.size());
    stack.step(step, distances);
    for (const std::uint32_t d : distances) hits += d < capacity;
  }
  return hits;
}

// The most hits there can be, by trying every set of rows to keep after every step. Rows are few.
std::uint64_t exhaustive_best(const Stream& stream, std::uint32_t capacity) {
  std::vector<int> best(std::size_t{1} << stream.distinct, -1);
  best[0] = 0;
  for (const auto& step : stream.steps) {
    std::uint32_t asked = 0;
    for (const std::uint32_t id : step) asked |= 1u << id;
    std::vector<int> after(best.size(), -1);
    for (std::uint32_t cached = 0; cached < best.size(); ++cached) {
      if (best[cached] < 0) continue;
      const int hits = best[cached] + __builtin_popcount(cached & asked);
      const std::uint32_t at_hand = cached | asked;
      for (std::uint32_t kept = at_hand;; kept = (kept - 1) & at_hand) {
        if (static_cast<std::uint32_t>(__builtin_popcount(kept)) <= capacity) after[kept] = std::max(after[kept], hits);
        if (kept == 0) break;
      }
    }
    best = after;
  }
  return static_cast<std::uint64_t>(*std::max_element(best.begin(), best.end()));
}

}  // namespace

TEST_CASE("stack distances equal a list's", "[stack_distances]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto steps = random_steps(seed, 40 + 300 * static_cast<std::uint32_t>(seed % 3), 400, 30);
    StackDistances stack;
    std::deque<std::uint32_t> list;  // most recent first
    std::vector<std::uint32_t> distances;
    for (const auto& step : steps) {
      distances.resize(step.size());
      stack.step(step, distances);
      for (std::size_t i = 0; i < step.size(); ++i) {
        const auto found = std::find(list.begin(), list.end(), step[i]);
        const auto expected = found == list.end() ? StackDistances::never : static_cast<std::uint32_t>(found - list.begin());
        REQUIRE(distances[i] == expected);
      }
      for (const std::uint32_t row : step) {
        std::erase(list, row);
        list.push_front(row);
      }
    }
    CHECK(stack.distinct() == list.size());
  }
}

TEST_CASE("stack distances stay exact when the axis is renumbered, within 24 bytes a row", "[stack_distances]") {
  StackDistances stack;
  constexpr std::uint32_t rows = 150'000, at_once = 1000;
  std::vector<std::uint32_t> step(at_once), distances(at_once);
  std::size_t most = 0;
  // Round and round: every row comes back after all others.
  for (std::uint32_t round = 0; round < 8; ++round)
    for (std::uint32_t begin = 0; begin < rows; begin += at_once) {
      for (std::uint32_t i = 0; i < at_once; ++i) step[i] = (begin + i) * 16;
      stack.step(step, distances);
      for (std::uint32_t i = 0; i < at_once; ++i)
        REQUIRE(distances[i] == (round == 0 ? StackDistances::never : rows - 1 - i));
      if (stack.distinct() >= 100'000) most = std::max(most, stack.bytes() / static_cast<std::size_t>(stack.distinct()));
    }
  CHECK(most < 24);
}

TEST_CASE("the optimum equals an exhaustive search", "[stack_distances]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Stream stream = dense(random_steps(seed, 9, 14, 4));
    for (std::uint32_t capacity = 1; capacity <= 5; ++capacity)
      CHECK(best_hits_of(stream, capacity) == exhaustive_best(stream, capacity));
  }
}

TEST_CASE("no policy beats the optimum, at any size", "[stack_distances]") {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Stream stream = dense(random_steps(seed, 500, 600, seed % 2 ? 1 : 12));
    std::vector<std::uint32_t> hottest(stream.distinct);
    for (std::uint32_t i = 0; i < stream.distinct; ++i) hottest[i] = i;
    std::uint64_t lru_before = 0, best_before = 0;
    for (const std::uint32_t capacity : {1u, 2u, 7u, 20u, 60u, 150u, 400u, 1000u}) {
      const std::uint64_t best = best_hits_of(stream, capacity), lru = lru_hits(stream, capacity);
      CHECK(lru <= best);
      CHECK(lru >= lru_before);
      CHECK(best >= best_before);
      lru_before = lru;
      best_before = best;
      for (const std::string& name : cache_policies()) {
        if (name == "belady") continue;
        CAPTURE(seed, name, capacity);
        const auto policy = make_cache_policy(name, {stream.distinct, capacity, hottest});
        // A static cache holds rows before they were ever asked for, which the optimum does not.
        const std::uint64_t first = name.starts_with("static") ? stream.distinct : 0;
        CHECK(hits_of(*policy, stream) <= best + first);
      }
    }
  }
}

TEST_CASE("the directory's LRU and the curve agree, lookup by lookup", "[stack_distances]") {
  const Stream stream = dense(random_steps(3, 700, 4000, 1));
  for (const std::uint32_t capacity : {1u, 5u, 50u, 300u, 600u}) {
    const auto policy = make_cache_policy("lru", {stream.distinct, capacity, {}});
    CHECK(hits_of(*policy, stream) == lru_hits(stream, capacity));
  }
  // Within steps the directory keeps a step's misses above its hits, the curve their order: a few hits may differ.
  const Stream steps = dense(random_steps(4, 700, 4000, 10));
  const auto policy = make_cache_policy("lru", {steps.distinct, 300, {}});
  const double directory = static_cast<double>(hits_of(*policy, steps)), curve = static_cast<double>(lru_hits(steps, 300));
  CHECK(std::abs(directory - curve) < 0.005 * static_cast<double>(steps.ids.size()));
}

TEST_CASE("policies that adapt keep what is asked for again", "[stack_distances]") {
  // A scan of rows that never come back beside ten that always do.
  std::vector<std::vector<std::uint32_t>> steps;
  for (std::uint32_t i = 0; i < 30; ++i) steps.push_back({i % 10});
  for (std::uint32_t i = 0; i < 2000; ++i) {
    steps.push_back({i % 10});
    for (std::uint32_t s = 0; s < 4; ++s) steps.push_back({100 + i * 4 + s});
  }
  const Stream stream = dense(steps);
  for (const char* name : {"arc", "lfu", "wtinylfu"}) {
    CAPTURE(name);
    const auto policy = make_cache_policy(name, {stream.distinct, 30, {}});
    CHECK(hits_of(*policy, stream) > 1800);
  }
  CHECK(lru_hits(stream, 30) == 26);  // 20 before the scan, and 6 while it is shorter than the cache
}
