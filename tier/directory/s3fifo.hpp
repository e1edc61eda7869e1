// S3-FIFO: new rows pass through a small queue (a tenth of the cache); those asked for again there go to the main queue, the
// others leave, and are remembered: a row that returns while it is remembered enters the main queue at once. Two bits a row
// count its hits up to 3. (Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, Algorithm 1.)
//
// What steps add: a row touched in the step cannot leave, so it goes round its queue once more; the hits of a row in one
// step count once; rows on their way into the cache count as the small queue's, where most will arrive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tier/directory/direct.hpp"
#include "tier/directory/ghost_rows.hpp"
#include "tier/directory/slot_queue.hpp"

namespace slacktier {

class S3FifoPolicy {
 public:
  explicit S3FifoPolicy(std::uint32_t slots) : links_(slots), state_(slots), ghosts_(main_share(slots)) { resize(slots); }

  void resize(std::uint32_t slots) {
    main_most_ = main_share(slots);
    small_least_ = slots - main_most_;
  }
  static constexpr bool learns_late = false;
  void begin_step() {
    ++step_;
    expected_ = 0;
    exhausted_ = false;
  }
  void prefetch(std::uint32_t slot) const { __builtin_prefetch(&state_[slot], 1); }
  void hit(std::uint32_t slot) {
    if (!touched(slot)) state_[slot] = step_ << 2 | std::min(hits(slot) + 1, 3u);
  }
  void reserve(std::uint32_t) { ++expected_; }
  void insert(std::uint32_t slot, std::uint32_t row) {
    for (const std::uint32_t left : left_) ghosts_.push(left);
    left_.clear();
    --expected_;
    state_[slot] = step_ << 2;
    links_.push(ghosts_.take(row, main_most_) ? main_ : small_, slot);
  }
  std::uint32_t victim(const std::uint32_t* row_of) {
    if (exhausted_) return no_slot;
    const bool small_first = small_.size + expected_ >= small_least_;
    std::uint32_t slot = small_first ? leave_small(row_of) : leave_main();
    if (slot == no_slot) slot = small_first ? leave_main() : leave_small(row_of);
    // Nothing that is pinned now is free before the next step.
    exhausted_ = slot == no_slot;
    if (!exhausted_) ++expected_;
    return slot;
  }
  // Of the small queue what is beyond its share goes first, then as much of the main queue; in each by hits, then by the
  // time of the last one: two bits alone cannot tell the hottest of a cache many times as large as it shall be.
  void shrink(std::uint32_t count, const std::uint32_t* row_of, std::vector<std::uint32_t>& leaving) {
    const std::uint32_t beyond = small_.size - std::min(small_.size, small_least_);
    const std::uint32_t from_small = std::min(std::max(beyond, count - std::min(count, main_.size)), count);
    const std::size_t first = leaving.size();
    leave_coldest(small_, from_small, leaving);
    for (std::size_t i = first; i < leaving.size(); ++i) left_.push_back(row_of[leaving[i]]);
    leave_coldest(main_, count - from_small, leaving);
  }
  std::size_t bytes() const { return links_.bytes() + state_.size() * sizeof(std::uint32_t) + ghosts_.bytes(); }

 private:
  static std::uint32_t main_share(std::uint32_t slots) { return slots - std::min(slots, std::max(1u, slots / 10)); }

  std::uint32_t leave_small(const std::uint32_t* row_of) {
    for (std::uint32_t looks = small_.size; looks > 0; --looks) {
      const std::uint32_t slot = links_.pop(small_);
      if (hits(slot) > 1) {
        state_[slot] -= hits(slot);
        links_.push(main_, slot);
        if (main_.size <= main_most_) continue;
        if (const std::uint32_t pushed_out = leave_main(); pushed_out != no_slot) return pushed_out;
      } else if (touched(slot)) {
        links_.push(small_, slot);
      } else {
        left_.push_back(row_of[slot]);
        return slot;
      }
    }
    return no_slot;
  }
  // After three rounds no hits are left to count down: a fourth finds a slot, unless all were touched in this step.
  std::uint32_t leave_main() {
    for (std::uint64_t looks = 4 * std::uint64_t{main_.size}; looks > 0; --looks) {
      const std::uint32_t slot = links_.pop(main_);
      if (hits(slot) == 0 && !touched(slot)) return slot;
      if (hits(slot) > 0) --state_[slot];
      links_.push(main_, slot);
    }
    return no_slot;
  }

  void leave_coldest(SlotQueue& queue, std::uint32_t count, std::vector<std::uint32_t>& leaving) {
    std::vector<std::uint32_t> slots(queue.size);
    for (std::uint32_t& slot : slots) slot = links_.pop(queue);
    std::vector<std::uint32_t> order = slots;
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (hits(a) != hits(b)) return hits(a) < hits(b);
      return age(a) > age(b);
    });
    std::vector<bool> leaves(state_.size());
    for (std::uint32_t i = 0; i < count; ++i) leaves[order[i]] = true;
    leaving.insert(leaving.end(), order.begin(), order.begin() + count);
    for (const std::uint32_t slot : slots)
      if (!leaves[slot]) links_.push(queue, slot);
  }

  std::uint32_t hits(std::uint32_t slot) const { return state_[slot] & 3; }
  std::uint32_t age(std::uint32_t slot) const { return (step_ - (state_[slot] >> 2)) & 0x3FFFFFFF; }
  bool touched(std::uint32_t slot) const { return (state_[slot] ^ step_ << 2) < 4; }

  SlotQueueLinks links_;
  SlotQueue small_, main_;
  std::vector<std::uint32_t> state_;  // the step that touched a slot last (as far as it fits), and two bits of hits
  GhostRows ghosts_;
  std::vector<std::uint32_t> left_;  // rows that left small_ in this step: remembered off the critical path
  std::uint32_t small_least_ = 0, main_most_ = 0;
  std::uint32_t expected_ = 0;  // slots given to rows that have not arrived
  std::uint32_t step_ = 0;
  bool exhausted_ = false;
};

}  // namespace slacktier
