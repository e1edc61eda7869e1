// LRU at one capacity against a list, and against the exact curve.
#include "harness/lru_cache.hpp"

#include <algorithm>
#include <cstdint>
#include <list>
#include <random>
#include <unordered_map>

#include "harness/stack_distances.hpp"
#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

class SlowLru {
 public:
  explicit SlowLru(std::size_t capacity) : capacity_(capacity) {}
  bool access(std::uint32_t row) {
    const auto found = at_.find(row);
    const bool hit = found != at_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(row);
    at_[row] = order_.begin();
    if (order_.size() > capacity_) {
      at_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }

 private:
  std::size_t capacity_;
  std::list<std::uint32_t> order_;
  std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> at_;
};

// Some rows often, many now and then; their numbers far apart.
std::vector<std::uint32_t> random_rows(std::uint64_t seed, std::size_t lookups, std::uint32_t rows) {
  std::mt19937_64 random(seed);
  std::vector<std::uint32_t> all(lookups);
  for (std::uint32_t& row : all)
    row = static_cast<std::uint32_t>((random() % 3 == 0 ? random() % rows : random() % (rows / 16 + 1)) * 2'654'435'761u);
  return all;
}

}  // namespace

TEST_CASE("an LRU cache hits where a list does, lookup by lookup", "[lru_cache]") {
  for (const std::uint32_t capacity : {1u, 2u, 7u, 8u, 100u, 3000u}) {
    const std::uint32_t rows = 4 * capacity + 3;
    LruCache cache(capacity);
    SlowLru slow(capacity);
    const auto stream = random_rows(capacity, 120'000, rows);
    for (std::size_t i = 0; i < stream.size();) {
      // Calls of one lookup and of many.
      const std::size_t n = std::min<std::size_t>(stream.size() - i, i % 5 == 0 ? 1 : 977);
      std::uint64_t expected = 0;
      for (std::size_t k = i; k < i + n; ++k) expected += slow.access(stream[k]);
      REQUIRE(cache.look_up(std::span(stream).subspan(i, n)) == expected);
      i += n;
    }
    CHECK(cache.held() == capacity);
  }
}

TEST_CASE("an LRU cache is a point of the exact curve, step by step", "[lru_cache]") {
  std::mt19937_64 random(8);
  for (const std::uint32_t capacity : {1u, 30u, 500u, 4096u}) {
    LruCache cache(capacity);
    StackDistances stack;
    std::vector<std::uint32_t> distances;
    std::vector<std::uint8_t> hit;
    for (int s = 0; s < 600; ++s) {
      // Steps far smaller and far larger than the cache.
      auto rows =
          random_rows(random(), s % 50 == 0 ? 3 * capacity + 1 : 1 + random() % (capacity / 3 + 1), 3 * capacity + 9);
      std::sort(rows.begin(), rows.end());
      rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
      std::shuffle(rows.begin(), rows.end(), random);
      distances.resize(rows.size());
      hit.assign(rows.size(), 2);
      stack.step(rows, distances);
      cache.step(rows, hit);
      for (std::size_t i = 0; i < rows.size(); ++i) REQUIRE(hit[i] == (distances[i] < capacity));
    }
  }
}

TEST_CASE("an LRU cache whose rows crowd into few lines stays exact", "[lru_cache]") {
  // Rows of a multiplicative hash's neighbours: many share their line.
  LruCache cache(64);
  SlowLru slow(64);
  std::mt19937_64 random(4);
  std::vector<std::uint32_t> crowd;
  for (std::uint32_t row = 0; crowd.size() < 90; ++row)
    if ((((row + std::uint64_t{1}) * 0x9E3779B97F4A7C15u) >> 60) == 3) crowd.push_back(row);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t row = crowd[random() % crowd.size()];
    REQUIRE(cache.look_up({&row, 1}) == slow.access(row));
  }
}

TEST_CASE("an LRU cache of no rows, or of too many, is refused", "[lru_cache]") {
  CHECK_THROWS_AS(LruCache(0), UsageError);
  CHECK_THROWS_AS(LruCache(std::uint64_t{1} << 30), UsageError);
}
