// SIEVE: rows in order of arrival, one visited bit each; the hand goes from old to new, clears visited bits and evicts the
// first row without one. New rows enter at the new end, whatever the hand's place. (Zhang et al., "SIEVE is simpler than
// LRU", NSDI 2024.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"
#include "tier/directory/slot_list.hpp"

namespace slacktier {

class SievePolicy {
 public:
  explicit SievePolicy(std::uint32_t slots) : list_(slots), state_(slots), hand_(slots) {}

  static constexpr bool learns_late = false;
  void begin_step() { ++step_; }
  void prefetch(std::uint32_t slot) const { __builtin_prefetch(&state_[slot], 1); }
  void hit(std::uint32_t slot) { state_[slot] = {step_, true}; }
  void reserve(std::uint32_t) {}  // a slot is in the list, and can be a victim, only once its row has arrived
  void insert(std::uint32_t slot, std::uint32_t) {
    list_.push_front(slot);
    state_[slot] = {step_, false};
  }
  // One turn of the hand clears every visited bit, a second one finds a slot without: unless all were touched in this step.
  std::uint32_t victim(const std::uint32_t*) {
    for (std::uint64_t looks = 2 * std::uint64_t{list_.size()}; looks > 0; --looks) {
      if (hand_ == list_.end()) hand_ = list_.back();
      const std::uint32_t slot = hand_;
      hand_ = list_.newer(slot);
      if (state_[slot].visited) {
        state_[slot].visited = false;
        continue;
      }
      if (state_[slot].touched == step_) continue;
      list_.remove(slot);
      return slot;
    }
    return no_slot;
  }
  // Rows not visited go first; of equals the one whose last hit is longest ago: a single bit cannot tell the hottest of a
  // cache many times as large as it shall be.
  void shrink(std::uint32_t count, const std::uint32_t*, std::vector<std::uint32_t>& leaving) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t slot = list_.back(); slot != list_.end(); slot = list_.newer(slot)) order.push_back(slot);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (state_[a].visited != state_[b].visited) return state_[b].visited;
      return step_ - state_[a].touched > step_ - state_[b].touched;
    });
    order.resize(count);
    for (const std::uint32_t slot : order) {
      if (hand_ == slot) hand_ = list_.newer(slot);
      list_.remove(slot);
    }
    leaving.insert(leaving.end(), order.begin(), order.end());
  }
  std::size_t bytes() const { return list_.bytes() + state_.size() * sizeof(State); }

 private:
  struct State {
    std::uint32_t touched = 0;
    bool visited = false;
  };
  SlotList list_;
  std::vector<State> state_;
  std::uint32_t hand_, step_ = 0;
};

}  // namespace slacktier
