// The directory itself, over one replacement policy. Private to tier.
//
// A policy is a class with
//   explicit Policy(std::uint32_t slots);   the most there will ever be
//   static constexpr bool learns_late;  hits of a step may be told after its victims were chosen: off the critical path, and
//                                       the directory itself then keeps the slots that the step has touched
//   void begin_step();                  slots hit or inserted from here on must not be victims before the next call
//   void prefetch(std::uint32_t slot);  brings the line that hit(slot) touches
//   void hit(std::uint32_t slot);       each time; with learns_late once a step and slot
//   void reserve(std::uint32_t slot);   an empty slot was given to a row that is still being read: no victim in this step
//   void insert(std::uint32_t slot, std::uint32_t row);   that row has arrived (victims that were given to a row arrive too)
//   std::uint32_t victim(const std::uint32_t* row_of);   an occupied slot to evict, or no_slot; row_of[s] is UINT32_MAX for
//                                       slots that are empty: never victims. With learns_late it may be a slot that the
//                                       step has touched: that one is passed over, and stays.
//   std::size_t bytes() const;
// and, where the policy cares,
//   void resize(std::uint32_t slots);   how many slots are in use from here on
//   void shrink(std::uint32_t count, const std::uint32_t* row_of, std::vector<std::uint32_t>& leaving);   appends the count
//                                       coldest slots, which leave; without it victim() is asked
//   void retire(std::uint32_t slot);    a slot is out of use: it left because the cache shrinks, or it was empty; reserve()
//                                       brings it back
//   static constexpr bool fixed = true; no row enters but by hold()
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "tier/directory.hpp"

namespace slacktier {

inline constexpr std::uint32_t no_row = UINT32_MAX;

template <class Policy>
class DirectoryOf final : public Directory {
 public:
  DirectoryOf(std::uint64_t rows, std::uint32_t slots, std::uint32_t reserved)
      : map_memory_(rows * sizeof(std::uint32_t)),
        row_memory_(std::max<std::size_t>(reserved, 1) * sizeof(std::uint32_t)),
        map_(static_cast<std::uint32_t*>(map_memory_.data())),
        row_of_(static_cast<std::uint32_t*>(row_memory_.data())),
        policy_(reserved) {
    rows_ = rows;
    reserved_ = reserved;
    std::memset(row_of_, 0xFF, reserved * sizeof(std::uint32_t));
    free_.reserve(1024);
    set_slots(slots);
  }

  void begin_step() override {
    end_step();
    policy_.begin_step();
  }

  void end_step() override {
    for (std::size_t h = 0; h < hit_count_; ++h) {
      map_[hits_[h].row] &= ~touched;
      if constexpr (Policy::learns_late) policy_.hit(hits_[h].slot);
    }
    hit_count_ = 0;
  }

  ResolveCounts resolve(std::span<const std::uint32_t> lookups, std::span<const std::uint32_t> at,
                        std::span<Descriptor> descriptors, std::vector<Miss>& misses, std::vector<Reuse>& reuses,
                        bool reuse) override {
    ResolveCounts counts;
    const std::size_t first_miss = misses.size();
    const std::size_t n = lookups.size();
    if (hits_.size() <= n) hits_.resize(n + 1);  // one entry is written ahead
    // Every line is asked for long before it is used. A hit is marked in the entry that was read anyway; what the policy
    // makes of it waits for the end of the step where the policy allows that, and comes before any slot is given away where
    // it does not.
    constexpr std::size_t ahead = 40;
    for (std::size_t i = 0; i < std::min(ahead, n); ++i) __builtin_prefetch(&map_[lookups[i]], 1);
    std::size_t touches = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i + ahead < n) __builtin_prefetch(&map_[lookups[i + ahead]], 1);
      const std::uint32_t row = lookups[i];
      const std::uint32_t entry = map_[row];
      if (entry == 0) {
        map_[row] = pending | static_cast<std::uint32_t>(misses.size());
        misses.push_back({row, no_slot, at[i]});
      } else if (entry & pending) {
        if (reuse) {
          reuses.push_back({at[i], entry & ~pending});
          ++counts.reused;
        } else {
          misses.push_back({row, unfilled, at[i]});
        }
      } else {
        const std::uint32_t slot = (entry & ~touched) - 1;
        descriptors[at[i]] = Descriptor::hit(slot);
        ++counts.hits;
        hits_[touches] = {slot, row};
        touches += !Policy::learns_late || (entry & touched) == 0;
        map_[row] = entry | touched;
        if constexpr (!Policy::learns_late) policy_.prefetch(slot);
      }
    }
    hit_count_ = touches;
    if constexpr (!Policy::learns_late)
      for (std::size_t h = 0; h < touches; ++h) policy_.hit(hits_[h].slot);
    counts.misses = static_cast<std::uint32_t>(misses.size() - first_miss);
    counts.evictions = place(std::span(misses).subspan(first_miss));
    return counts;
  }

  void settle(const Miss& miss, bool ok) override {
    std::uint32_t& entry = map_[miss.row];
    if (miss.slot == no_slot) {
      // The second miss of a row (reuse off) must not undo what the first one entered.
      if (entry & pending) entry = 0;
    } else if (ok) {
      entry = miss.slot + 1;
      policy_.insert(miss.slot, miss.row);
      ++occupied_;
    } else {
      entry = 0;
      row_of_[miss.slot] = no_row;
      free_.push_back(miss.slot);
    }
  }

  void hold(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled) override {
    for (const std::uint32_t row : rows) {
      if (map_[row] != 0) continue;
      const std::uint32_t slot = take_empty();
      if (slot == no_slot) break;
      row_of_[slot] = row;
      map_[row] = slot + 1;
      policy_.insert(slot, row);
      ++occupied_;
      filled.push_back(slot);
    }
  }

  void resize(std::uint64_t slots) override {
    const std::uint64_t wanted = std::min(slots, rows_);
    if (wanted > reserved_)
      throw UsageError(
          fmt::format("cache of {} rows: {} are reserved for it; reserve more when the tier is made", slots, reserved_));
    set_slots(static_cast<std::uint32_t>(wanted));
    while (in_use_ > slots_ && !free_.empty()) {
      retire(free_.back());
      free_.pop_back();
    }
    // The policy's own order. A step of its own: nothing is pinned; another one where every slot got a second chance.
    begin_step();
    std::vector<std::uint32_t> leaving;
    const std::uint32_t count = in_use_ - std::min(in_use_, slots_);
    if constexpr (requires { policy_.shrink(count, row_of_, leaving); }) {
      policy_.shrink(count, row_of_, leaving);
    } else {
      while (leaving.size() < count)
        if (const std::uint32_t slot = policy_.victim(row_of_); slot != no_slot)
          leaving.push_back(slot);
        else
          policy_.begin_step();
    }
    for (const std::uint32_t slot : leaving) {
      map_[row_of_[slot]] = 0;
      row_of_[slot] = no_row;
      --occupied_;
      retire(slot);
    }
    // The lowest come back first.
    std::sort(retired_.begin(), retired_.end(), std::greater<>());
  }

  std::uint32_t row_of(std::uint32_t slot) const override {
    const std::uint32_t row = row_of_[slot];
    return row != no_row && (map_[row] & ~touched) == slot + 1 ? row : no_row;
  }
  std::uint32_t slot_of(std::uint32_t row) const override {
    const std::uint32_t entry = map_[row];
    return entry == 0 || (entry & pending) ? no_slot : (entry & ~touched) - 1;
  }
  std::uint32_t occupied() const override { return occupied_; }
  std::size_t bytes() const override {
    return rows_ * sizeof(std::uint32_t) + reserved_ * sizeof(std::uint32_t) + policy_.bytes();
  }

 private:
  static constexpr std::uint32_t pending = 1u << 31;
  static constexpr std::uint32_t touched = 1u << 30;  // a cached row that this step has hit
  static_assert(max_slots < touched);
  static constexpr std::uint32_t unfilled = no_slot - 1;  // marks a repeated miss between resolve's two passes

  static constexpr bool fixed = requires { Policy::fixed; };

  void set_slots(std::uint32_t slots) {
    slots_ = slots;
    if constexpr (requires { policy_.resize(slots); }) policy_.resize(slots);
  }
  void retire(std::uint32_t slot) {
    if constexpr (requires { policy_.retire(slot); }) policy_.retire(slot);
    retired_.push_back(slot);
    --in_use_;
  }
  // Failed reads' slots first, then retired and never used ones in order; no_slot when all are in use.
  std::uint32_t take_empty() {
    std::uint32_t slot = 0;
    if (!free_.empty()) {
      slot = free_.back();
      free_.pop_back();
    } else if (in_use_ == slots_) {
      return no_slot;
    } else if (++in_use_; !retired_.empty()) {
      slot = retired_.back();
      retired_.pop_back();
    } else {
      slot = next_empty_++;
    }
    policy_.reserve(slot);
    return slot;
  }

  // Gives each miss a slot: empty ones first, then victims; no_slot when every slot was touched in this step.
  std::uint32_t place(std::span<Miss> misses) {
    if constexpr (fixed) {
      for (Miss& miss : misses) miss.slot = no_slot;
      return 0;
    }
    std::uint32_t wanted = 0;
    for (const Miss& miss : misses) wanted += miss.slot != unfilled;
    const std::uint32_t at_hand = static_cast<std::uint32_t>(free_.size()) + (slots_ - in_use_);
    const std::uint32_t victims = wanted > at_hand ? choose_victims(wanted - at_hand) : 0;
    std::uint32_t victim = 0;
    for (Miss& miss : misses) {
      if (miss.slot == unfilled) {
        miss.slot = no_slot;
        continue;
      }
      miss.slot = take_empty();
      if (miss.slot == no_slot) {
        if (victim == victims) break;  // no_slot for this one and the rest
        miss.slot = victims_[victim].slot;
        map_[victims_[victim++].row] = 0;
      }
      row_of_[miss.slot] = miss.row;
    }
    for (Miss& miss : misses)
      if (miss.slot == unfilled) miss.slot = no_slot;
    occupied_ -= victims;
    return victims;
  }

  // Up to `wanted` slots to evict, into victims_. All that are still wanted are asked for at once, so that the entries of
  // their rows arrive together.
  std::uint32_t choose_victims(std::uint32_t wanted) {
    if (slots_ == 0) return 0;
    if (victims_.size() < wanted) victims_.resize(wanted);
    std::uint32_t chosen = 0;
    for (bool more = true; more && chosen < wanted;) {
      std::uint32_t offered = chosen;
      for (; offered < wanted; ++offered) {
        const std::uint32_t slot = policy_.victim(row_of_);
        more = slot != no_slot;
        if (!more) break;
        victims_[offered] = {slot, row_of_[slot]};
        __builtin_prefetch(&map_[row_of_[slot]], 1);
      }
      if constexpr (!Policy::learns_late) return offered;
      for (std::uint32_t v = chosen; v < offered; ++v)
        if ((map_[victims_[v].row] & (touched | pending)) == 0) victims_[chosen++] = victims_[v];
    }
    return chosen;
  }

  struct Held {
    std::uint32_t slot = 0, row = 0;
  };

  HostMemory map_memory_, row_memory_;
  std::uint32_t* map_;     // [rows] entry per row
  std::uint32_t* row_of_;  // [slots] row that a slot holds or awaits, no_row when empty
  Policy policy_;
  std::vector<std::uint32_t> free_;     // slots given back by failed reads
  std::vector<std::uint32_t> retired_;  // slots that a smaller size took out of use, falling
  std::vector<Held> hits_, victims_;    // of the step at hand; the first hit_count_ hits count
  std::size_t hit_count_ = 0;
  std::uint32_t next_empty_ = 0, occupied_ = 0;
  std::uint32_t in_use_ = 0;  // slots that hold a row, await one, or are in free_
};

}  // namespace slacktier
