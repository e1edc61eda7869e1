// The directory against a slow, obvious CLOCK.
#include "tier/directory.hpp"

#include <cstdint>
#include <map>
#include <random>
#include <set>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// A ring of rows with a bit each, searched linearly. New rows of a step take the places of rows that the step has not
// touched; its hits set their bits when it ends. The hand makes at most two turns a step.
class SlowClock {
 public:
  explicit SlowClock(std::size_t slots) : ring_(slots) {}

  struct Step {
    std::vector<int> kinds;  // per lookup: 0 hit, 1 miss, 2 reuse
    std::vector<std::uint32_t> filled, unfilled;
  };
  Step step(const std::vector<std::uint32_t>& rows) {
    Step out;
    std::vector<std::uint32_t> fresh;
    std::set<std::size_t> hit, given;  // places
    for (const auto row : rows) {
      const auto at = std::find_if(ring_.begin(), ring_.end(), [&](const Slot& s) { return s.used && s.row == row; });
      if (at != ring_.end()) {
        hit.insert(static_cast<std::size_t>(at - ring_.begin()));
        out.kinds.push_back(0);
      } else if (std::find(fresh.begin(), fresh.end(), row) != fresh.end()) {
        out.kinds.push_back(2);
      } else {
        fresh.push_back(row);
        out.kinds.push_back(1);
      }
    }
    std::size_t looks = 2 * ring_.size();
    for (const auto row : fresh) {
      auto place = std::find_if(ring_.begin(), ring_.end(), [](const Slot& s) { return !s.used; });
      while (place == ring_.end() && looks > 0) {
        const std::size_t at = hand_;
        Slot& slot = ring_[at];
        --looks;
        hand_ = (hand_ + 1) % ring_.size();
        const bool passed = slot.bit;
        slot.bit = !passed && !(slot.fresh);
        if (passed || slot.fresh || hit.contains(at)) continue;
        place = ring_.begin() + static_cast<std::ptrdiff_t>(at);
      }
      if (place == ring_.end()) {
        out.unfilled.push_back(row);
        continue;
      }
      if (!place->used) place->fresh = true;
      *place = {true, place->bit, place->fresh, row};
      given.insert(static_cast<std::size_t>(place - ring_.begin()));
      out.filled.push_back(row);
    }
    for (const auto at : hit) ring_[at].bit = true;
    for (const auto at : given) ring_[at].bit = ring_[at].fresh = false;
    return out;
  }
  std::set<std::uint32_t> content() const {
    std::set<std::uint32_t> rows;
    for (const auto& slot : ring_)
      if (slot.used) rows.insert(slot.row);
    return rows;
  }

 private:
  struct Slot {
    bool used = false, bit = false;
    bool fresh = false;  // was empty before this step: the hand passes it as it passes an empty one
    std::uint32_t row = 0;
  };
  std::vector<Slot> ring_;
  std::size_t hand_ = 0;
};

struct Lists {
  std::vector<Descriptor> descriptors;
  std::vector<std::uint32_t> at;
  std::vector<Miss> misses;
  std::vector<Reuse> reuses;
  ResolveCounts resolve(Directory& directory, const std::vector<std::uint32_t>& rows, bool reuse = true) {
    descriptors.assign(rows.size(), Descriptor::zero());
    at.resize(rows.size());
    for (std::size_t i = 0; i < at.size(); ++i) at[i] = static_cast<std::uint32_t>(i);
    misses.clear();
    reuses.clear();
    directory.begin_step();
    return directory.resolve(rows, at, descriptors, misses, reuses, reuse);
  }
};

}  // namespace

TEST_CASE("clock gives the same hits, reuses and contents as the slow one", "[directory]") {
  std::mt19937_64 random(7);
  for (const std::uint32_t slots : {1u, 3u, 63u, 64u, 65u, 200u, 1000u}) {
    const std::uint32_t rows = 1500;
    const auto directory = Directory::make("clock", rows, slots);
    SlowClock slow(slots);
    std::map<std::uint32_t, std::uint32_t> slot_rows;
    for (int step = 0; step < 300; ++step) {
      std::vector<std::uint32_t> lookups(1 + random() % 180);
      // A skewed draw, so that hits, repeats and evictions all occur.
      for (auto& row : lookups) row = static_cast<std::uint32_t>((random() % rows) * (random() % rows) / rows);
      Lists lists;
      const ResolveCounts counts = lists.resolve(*directory, lookups);
      const auto expected = slow.step(lookups);
      std::vector<int> kinds(lookups.size(), -1);
      for (std::size_t i = 0; i < lookups.size(); ++i)
        if (lists.descriptors[i].kind() == LookupKind::hit) {
          kinds[i] = 0;
          REQUIRE(directory->row_of(lists.descriptors[i].slot()) != UINT32_MAX);
        }
      std::set<std::uint32_t> step_slots;
      for (const auto& miss : lists.misses) {
        kinds[miss.lookup] = 1;
        REQUIRE(lookups[miss.lookup] == miss.row);
        if (miss.slot == no_slot) continue;
        REQUIRE(miss.slot < slots);
        REQUIRE(step_slots.insert(miss.slot).second);
      }
      for (const auto& reuse : lists.reuses) {
        kinds[reuse.lookup] = 2;
        REQUIRE(lists.misses[reuse.miss].row == lookups[reuse.lookup]);
      }
      REQUIRE(kinds == expected.kinds);
      REQUIRE(counts.hits + counts.reused + counts.misses == lookups.size());
      // No slot that was hit in this step may be given away in it.
      for (std::size_t i = 0; i < lookups.size(); ++i)
        if (kinds[i] == 0) REQUIRE(!step_slots.contains(lists.descriptors[i].slot()));
      for (const auto& miss : lists.misses) directory->settle(miss, true);
      std::set<std::uint32_t> content;
      for (std::uint32_t s = 0; s < slots; ++s)
        if (const auto row = directory->row_of(s); row != UINT32_MAX) {
          REQUIRE(directory->slot_of(row) == s);
          content.insert(row);
        }
      REQUIRE(content == slow.content());
      REQUIRE(content.size() == directory->occupied());
    }
  }
}

TEST_CASE("a failed row leaves the directory and its slot comes back", "[directory]") {
  const auto directory = Directory::make("clock", 100, 4);
  Lists lists;
  lists.resolve(*directory, {10, 11, 12, 13, 14});
  REQUIRE(lists.misses.size() == 5);
  REQUIRE(lists.misses[4].slot == no_slot);
  const std::uint32_t freed = lists.misses[1].slot;
  for (std::size_t m = 0; m < 5; ++m) directory->settle(lists.misses[m], m != 1);
  REQUIRE(directory->slot_of(11) == no_slot);
  REQUIRE(directory->slot_of(14) == no_slot);
  REQUIRE(directory->row_of(freed) == UINT32_MAX);
  REQUIRE(directory->occupied() == 3);
  lists.resolve(*directory, {10, 20});
  REQUIRE(lists.descriptors[0].kind() == LookupKind::hit);
  REQUIRE(lists.misses.at(0).slot == freed);
}

TEST_CASE("every slot touched: misses go unfilled, nothing stalls", "[directory]") {
  const auto directory = Directory::make("clock", 100, 2);
  Lists lists;
  lists.resolve(*directory, {1, 2});
  for (const auto& miss : lists.misses) directory->settle(miss, true);
  lists.resolve(*directory, {1, 2, 3, 4});
  REQUIRE(lists.misses.size() == 2);
  for (const auto& miss : lists.misses) {
    REQUIRE(miss.slot == no_slot);
    directory->settle(miss, true);
  }
  REQUIRE(directory->slot_of(1) != no_slot);
  REQUIRE(directory->slot_of(2) != no_slot);
}

TEST_CASE("without reuse each lookup of an absent row is a miss, and one of them fills", "[directory]") {
  for (const bool first_settles_last : {false, true}) {
    const auto directory = Directory::make("clock", 100, 4);
    Lists lists;
    const ResolveCounts counts = lists.resolve(*directory, {5, 5, 5}, false);
    REQUIRE(counts.misses == 3);
    REQUIRE(lists.misses[0].slot != no_slot);
    REQUIRE(lists.misses[1].slot == no_slot);
    REQUIRE(lists.misses[2].slot == no_slot);
    if (first_settles_last) std::swap(lists.misses[0], lists.misses[2]);
    for (const auto& miss : lists.misses) directory->settle(miss, true);
    REQUIRE(directory->slot_of(5) != no_slot);
  }
}

TEST_CASE("a cache larger than the table holds the table", "[directory]") {
  const auto directory = Directory::make("clock", 50, 1000);
  REQUIRE(directory->slots() == 50);
  Lists lists;
  std::vector<std::uint32_t> all(50);
  for (std::uint32_t i = 0; i < 50; ++i) all[i] = i;
  lists.resolve(*directory, all);
  for (const auto& miss : lists.misses) directory->settle(miss, true);
  REQUIRE(lists.resolve(*directory, all).hits == 50);
}

TEST_CASE("no cache: the rows of a step are still read once", "[directory]") {
  const auto directory = Directory::make("clock", 50, 0);
  Lists lists;
  for (int step = 0; step < 3; ++step) {
    const ResolveCounts counts = lists.resolve(*directory, {7, 8, 7});
    REQUIRE(counts.misses == 2);
    REQUIRE(counts.reused == 1);
    for (const auto& miss : lists.misses) {
      REQUIRE(miss.slot == no_slot);
      directory->settle(miss, true);
    }
  }
}

TEST_CASE("bad directories are refused in words", "[directory]") {
  REQUIRE_THROWS_AS(Directory::make("no-such-policy", 10, 1), UsageError);
  REQUIRE_THROWS_AS(Directory::make("clock", 0, 1), UsageError);
  REQUIRE_THROWS_AS(Directory::make("clock", std::uint64_t{1} << 31, 1), UsageError);
}
