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
  explicit ClockPolicy(std::uint32_t slots) : slots_(slots), referenced_((std::size_t{slots} + 63) / 64) {}

  // The hand makes at most one turn a step. A slot touched in the step has its bit set, or lies behind the hand: it can only
  // become a victim in a second turn.
  void begin_step() { budget_ = slots_; }
  void prefetch(std::uint32_t slot) { __builtin_prefetch(&referenced_[slot / 64], 1); }
  void hit(std::uint32_t slot) { referenced_[slot / 64] |= std::uint64_t{1} << (slot % 64); }
  void reserve(std::uint32_t slot) { hit(slot); }
  void insert(std::uint32_t slot, std::uint32_t) { referenced_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64)); }

  std::uint32_t victim(const std::uint32_t* row_of) {
    while (budget_ > 0) {
      const std::uint32_t word = hand_ / 64, bit = hand_ % 64;
      const std::uint32_t bits = std::min<std::uint32_t>({64, slots_ - word * 64, bit + budget_});
      const std::uint64_t reach =
          (bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1) & (~std::uint64_t{0} << bit);
      const std::uint64_t clear = ~referenced_[word] & reach;
      const std::uint32_t stop = clear ? static_cast<std::uint32_t>(std::countr_zero(clear)) : bits;
      // Bits [bit, stop) are set: the hand passes and clears them.
      referenced_[word] &= ~(reach & ((stop == 64 ? std::uint64_t{0} : std::uint64_t{1} << stop) - 1));
      const std::uint32_t passed = stop - bit + (clear ? 1 : 0);
      const std::uint32_t slot = word * 64 + stop;
      budget_ -= passed;
      hand_ += passed;
      if (hand_ == slots_) hand_ = 0;
      if (clear && row_of[slot] != no_row) return slot;
    }
    return no_slot;
  }

  std::size_t bytes() const { return referenced_.size() * sizeof(std::uint64_t); }

 private:
  std::uint32_t slots_, hand_ = 0, budget_ = 0;
  std::vector<std::uint64_t> referenced_;
};

}  // namespace slacktier
