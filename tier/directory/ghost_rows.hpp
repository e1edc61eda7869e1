// The rows that left a cache last, without their bytes: what a policy remembers of rows it no longer holds. Private to tier.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"

namespace slacktier {

// Rows by the order in which they were pushed. A row that is taken leaves its place empty: it still ages the rows before it,
// as in the published implementation, whose ghost entries carry the time of their eviction.
class GhostRows {
 public:
  explicit GhostRows(std::uint32_t most) : ring_(most, no_row), places_(std::bit_ceil(2 * std::size_t{most} + 2)) {}

  // Remembers `row`, which must not be remembered already, and forgets the row pushed `most` pushes before.
  void push(std::uint32_t row) {
    if (ring_.empty()) return;
    if (ring_[head_] != no_row) erase(find(ring_[head_]));
    ring_[head_] = row;
    std::size_t at = home(row);
    while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
    places_[at] = head_ + 1;
    if (++head_ == ring_.size()) head_ = 0;
  }

  // Forgets `row`; true when it was among the last `reach` pushed.
  bool take(std::uint32_t row, std::uint32_t reach) {
    const std::size_t at = find(row);
    if (places_[at] == 0) return false;
    const std::uint32_t place = places_[at] - 1;
    const std::uint32_t age = head_ > place ? head_ - place : head_ + static_cast<std::uint32_t>(ring_.size()) - place;
    erase(at);
    return age <= reach;
  }

  std::size_t bytes() const { return (ring_.size() + places_.size()) * sizeof(std::uint32_t); }

 private:
  std::size_t home(std::uint32_t row) const {
    return static_cast<std::size_t>((row * 0x9E3779B97F4A7C15u) >> 32) & (places_.size() - 1);
  }
  std::size_t find(std::uint32_t row) const {
    std::size_t at = home(row);
    while (places_[at] != 0 && ring_[places_[at] - 1] != row) at = (at + 1) & (places_.size() - 1);
    return at;
  }
  // Later entries of the same run move up, so that no search ends too early.
  void erase(std::size_t hole) {
    const std::size_t mask = places_.size() - 1;
    ring_[places_[hole] - 1] = no_row;
    for (std::size_t at = (hole + 1) & mask; places_[at] != 0; at = (at + 1) & mask) {
      const std::size_t from_home = (at - home(ring_[places_[at] - 1])) & mask;
      if (from_home < ((at - hole) & mask)) continue;
      places_[hole] = places_[at];
      hole = at;
    }
    places_[hole] = 0;
  }

  std::vector<std::uint32_t> ring_;    // rows by push; no_row where one was taken
  std::vector<std::uint32_t> places_;  // open addressing by row: place in the ring + 1, 0 empty
  std::uint32_t head_ = 0;             // place of the next push
};

}  // namespace slacktier
