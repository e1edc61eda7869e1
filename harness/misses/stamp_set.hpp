// A small hash table that is emptied at no cost: which rows or pages a step has asked for already. Private to harness.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace slacktier {

class StampSet {
 public:
  // Empties it, with room for `keys`.
  void begin(std::size_t keys) {
    const std::size_t wanted = std::bit_ceil(std::max<std::size_t>(16, 2 * keys));
    if (slots_.size() < wanted) {
      slots_.assign(wanted, {});
      stamp_ = 0;
    }
    if (++stamp_ == 0) {
      std::fill(slots_.begin(), slots_.end(), Slot{});
      stamp_ = 1;
    }
    count_ = 0;
  }
  // Number of the key among those since begin, in the order of their first insertion; a new key's is count() - 1 then.
  std::uint32_t insert(std::uint32_t key) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = (key * 0x9E3779B97F4A7C15u >> 32) & mask;; i = (i + 1) & mask) {
      Slot& slot = slots_[i];
      if (slot.stamp != stamp_) {
        slot = {key, stamp_, count_};
        return count_++;
      }
      if (slot.key == key) return slot.number;
    }
  }
  std::uint32_t count() const { return count_; }

 private:
  struct Slot {
    std::uint32_t key = 0, stamp = 0, number = 0;
  };
  std::vector<Slot> slots_;
  std::uint32_t stamp_ = 0, count_ = 0;
};

}  // namespace slacktier
