// CLOCK: one reference bit per slot. A hit sets it, a new row enters with it clear, the hand clears set bits and evicts the
// first slot whose bit is clear. (Corbató, "A paging experiment with the Multics system", 1968.)
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"

namespace slacktier {

class ClockPolicy {
 public:
  explicit ClockPolicy(std::uint32_t slots)
      : slots_(slots), referenced_((std::size_t{slots} + 63) / 64), unused_(referenced_.size(), ~std::uint64_t{0}) {}

  // A step's hits set their bits after its victims are chosen: all that the step has touched keeps its slot, and its bit.
  static constexpr bool learns_late = true;

  // The hand makes at most two turns a step: the first clears every bit, the second finds what the step has not touched.
  void begin_step() { budget_ = 2 * std::uint64_t{slots_}; }
  void prefetch(std::uint32_t) {}
  void hit(std::uint32_t slot) { referenced_[slot / 64] |= std::uint64_t{1} << (slot % 64); }
  // Its bit is clear when its row arrives; until then the slot is no victim.
  void reserve(std::uint32_t slot) { unused_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }
  void retire(std::uint32_t slot) { unused_[slot / 64] |= std::uint64_t{1} << (slot % 64); }
  void insert(std::uint32_t slot, std::uint32_t) { referenced_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }

  std::uint32_t victim(const std::uint32_t* row_of) {
    while (budget_ > 0) {
      const std::uint32_t word = hand_ / 64, bit = hand_ % 64;
      const std::uint32_t bits =
          static_cast<std::uint32_t>(std::min<std::uint64_t>({64, slots_ - word * 64, bit + budget_}));
      const std::uint64_t reach =
          (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) & (~std::uint64_t{0} << bit);
      const std::uint64_t clear = ~referenced_[word] & ~unused_[word] & reach;
      const std::uint32_t stop = clear ? static_cast<std::uint32_t>(std::countr_zero(clear)) : bits;
      // Slots [bit, stop) are referenced or not in use: the hand passes and clears their bits.
      referenced_[word] &= ~(reach & ((stop == 64 ? std::uint64_t{0} : std::uint64_t{1} << stop) - 1));
      const std::uint32_t passed = stop - bit + (clear ? 1 : 0);
      const std::uint32_t slot = word * 64 + stop;
      budget_ -= passed;
      hand_ += passed;
      if (hand_ == slots_) hand_ = 0;
      if (clear && row_of[slot] != no_row) {
        hit(slot);  // offered once a step
        return slot;
      }
    }
    return no_slot;
  }

  std::size_t bytes() const { return (referenced_.size() + unused_.size()) * sizeof(std::uint64_t); }

 private:
  std::uint32_t slots_, hand_ = 0;
  std::uint64_t budget_ = 0;
  std::vector<std::uint64_t> referenced_;
  std::vector<std::uint64_t> unused_;  // slots that were never given to a row, or were retired
};

}  // namespace slacktier
