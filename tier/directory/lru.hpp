// LRU: evicts the slot that was touched longest ago.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"
#include "tier/directory/slot_list.hpp"

namespace slacktier {

class LruPolicy {
 public:
  explicit LruPolicy(std::uint32_t slots) : list_(slots), touched_(slots) {}

  static constexpr bool learns_late = false;
  void begin_step() { ++step_; }
  void prefetch(std::uint32_t slot) const { list_.prefetch(slot); }
  void hit(std::uint32_t slot) {
    list_.remove(slot);
    insert(slot, 0);
  }
  void reserve(std::uint32_t) {}  // a slot is in the list, and can be a victim, only once its row has arrived
  void insert(std::uint32_t slot, std::uint32_t) {
    list_.push_front(slot);
    touched_[slot] = step_;
  }
  std::uint32_t victim(const std::uint32_t*) {
    const std::uint32_t oldest = list_.back();
    // When the oldest was touched in this step, all others were, too.
    if (oldest == list_.end() || touched_[oldest] == step_) return no_slot;
    list_.remove(oldest);
    return oldest;
  }
  std::size_t bytes() const { return list_.bytes() + touched_.size() * sizeof(std::uint32_t); }

 private:
  SlotList list_;
  std::vector<std::uint32_t> touched_;  // step that touched a slot last
  std::uint32_t step_ = 0;
};

}  // namespace slacktier
