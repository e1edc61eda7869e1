// Replacement policies against slow, obvious models, through the directory that uses them.
#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tier/directory.hpp"

using namespace slacktier;

namespace {

// What a model is told and asked: hits of a step first, then its new rows in order, then their arrival.
class Model {
 public:
  virtual ~Model() = default;
  virtual bool holds(std::uint32_t row) const = 0;
  virtual std::size_t size() const = 0;
  virtual void hit(std::uint32_t row, int step) = 0;
  virtual bool evict(int step) = 0;  // frees one place; false when every row was touched in this step
  virtual void insert(std::uint32_t row, int step) = 0;
  virtual std::set<std::uint32_t> content() const = 0;
};

struct Entry {
  std::uint32_t row = 0;
  int touched = 0;
  bool visited = false;
};

// Rows in a list, newest first, searched linearly.
class ListModel : public Model {
 public:
  bool holds(std::uint32_t row) const override {
    return std::any_of(rows_.begin(), rows_.end(), [&](const Entry& e) { return e.row == row; });
  }
  std::size_t size() const override { return rows_.size(); }
  void insert(std::uint32_t row, int step) override { rows_.push_front({row, step, false}); }
  std::set<std::uint32_t> content() const override {
    std::set<std::uint32_t> rows;
    for (const auto& entry : rows_) rows.insert(entry.row);
    return rows;
  }

 protected:
  std::list<Entry>::iterator find(std::uint32_t row) {
    return std::find_if(rows_.begin(), rows_.end(), [&](const Entry& e) { return e.row == row; });
  }
  std::list<Entry> rows_;
};

class SlowLru final : public ListModel {
 public:
  void hit(std::uint32_t row, int step) override {
    rows_.erase(find(row));
    rows_.push_front({row, step, false});
  }
  bool evict(int step) override {
    if (rows_.empty() || rows_.back().touched == step) return false;
    rows_.pop_back();
    return true;
  }
};

class SlowSieve final : public ListModel {
 public:
  void hit(std::uint32_t row, int step) override {
    const auto entry = find(row);
    entry->visited = true;
    entry->touched = step;
  }
  bool evict(int step) override {
    for (std::size_t looks = 2 * rows_.size(); looks > 0; --looks) {
      if (!placed_) {
        hand_ = std::prev(rows_.end());
        placed_ = true;
      }
      const auto entry = hand_;
      if (entry == rows_.begin())
        placed_ = false;  // past the newest: from the oldest again
      else
        --hand_;
      if (entry->visited) {
        entry->visited = false;
        continue;
      }
      if (entry->touched == step) continue;
      rows_.erase(entry);
      return true;
    }
    return false;
  }

 private:
  std::list<Entry>::iterator hand_;
  bool placed_ = false;
};

std::unique_ptr<Model> slow_model(const std::string& policy) {
  if (policy == "lru") return std::make_unique<SlowLru>();
  return std::make_unique<SlowSieve>();
}

}  // namespace

TEST_CASE("each policy keeps the rows that its slow model keeps", "[policies]") {
  for (const std::string& policy : {std::string("lru"), std::string("sieve")})
    for (const std::uint32_t slots : {1u, 2u, 7u, 100u, 400u}) {
      INFO(policy << " " << slots);
      std::mt19937_64 random(slots);
      constexpr std::uint32_t rows = 600;
      const auto directory = Directory::make(policy, rows, slots);
      const auto model = slow_model(policy);
      std::uint64_t hits = 0, evictions = 0;
      for (int step = 1; step <= 300; ++step) {
        std::vector<std::uint32_t> lookups(1 + random() % 60), at(lookups.size());
        for (std::size_t i = 0; i < lookups.size(); ++i) {
          lookups[i] = static_cast<std::uint32_t>((random() % rows) * (random() % rows) / rows);
          at[i] = static_cast<std::uint32_t>(i);
        }
        std::vector<Descriptor> descriptors(lookups.size());
        std::vector<Miss> misses;
        std::vector<Reuse> reuses;
        directory->begin_step();
        const ResolveCounts counts = directory->resolve(lookups, at, descriptors, misses, reuses);
        hits += counts.hits;
        evictions += counts.evictions;

        std::vector<std::uint32_t> fresh, kept;
        std::uint32_t expected_hits = 0;
        for (const auto row : lookups)
          if (model->holds(row)) {
            model->hit(row, step);
            ++expected_hits;
          } else if (std::find(fresh.begin(), fresh.end(), row) == fresh.end()) {
            fresh.push_back(row);
          }
        for (const auto row : fresh)
          if (model->size() + kept.size() < slots || model->evict(step)) kept.push_back(row);
        for (const auto row : kept) model->insert(row, step);

        REQUIRE(counts.hits == expected_hits);
        REQUIRE(misses.size() == fresh.size());
        for (const auto& miss : misses) directory->settle(miss, true);
        std::set<std::uint32_t> content;
        for (std::uint32_t s = 0; s < slots; ++s)
          if (const auto row = directory->row_of(s); row != UINT32_MAX) content.insert(row);
        REQUIRE(content == model->content());
      }
      REQUIRE(evictions > 0);
      if (slots >= 7) REQUIRE(hits > 0);
    }
}

TEST_CASE("no policy gives away a slot that the step has touched, and failed rows come back as free slots", "[policies]") {
  for (const auto& policy : directory_policies()) {
    INFO(policy);
    std::mt19937_64 random(9);
    constexpr std::uint32_t rows = 300, slots = 40;
    const auto directory = Directory::make(policy, rows, slots);
    for (int step = 0; step < 500; ++step) {
      std::vector<std::uint32_t> lookups(1 + random() % 70), at(lookups.size());
      for (std::size_t i = 0; i < lookups.size(); ++i) {
        lookups[i] = static_cast<std::uint32_t>(random() % rows);
        at[i] = static_cast<std::uint32_t>(i);
      }
      std::vector<Descriptor> descriptors(lookups.size());
      std::vector<Miss> misses;
      std::vector<Reuse> reuses;
      directory->begin_step();
      directory->resolve(lookups, at, descriptors, misses, reuses);
      std::set<std::uint32_t> touched;
      for (const auto& descriptor : descriptors)
        if (descriptor.kind() == LookupKind::hit) touched.insert(descriptor.slot());
      for (const auto& miss : misses)
        if (miss.slot != no_slot) {
          REQUIRE(miss.slot < slots);
          REQUIRE(touched.insert(miss.slot).second);
        }
      for (const auto& miss : misses) directory->settle(miss, random() % 5 != 0);
      std::uint32_t held = 0;
      for (std::uint32_t s = 0; s < slots; ++s) held += directory->row_of(s) != UINT32_MAX;
      REQUIRE(held == directory->occupied());
    }
  }
}
