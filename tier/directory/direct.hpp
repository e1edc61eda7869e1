// The directory itself, over one replacement policy. Private to tier.
//
// A policy is a class with
//   explicit Policy(std::uint32_t slots);
//   void begin_step();                  slots hit or inserted from here on must not be victims before the next call
//   void prefetch(std::uint32_t slot);  brings the line that hit(slot) touches
//   void hit(std::uint32_t slot);
//   void reserve(std::uint32_t slot);   an empty slot was given to a row that is still being read: no victim in this step
//   void insert(std::uint32_t slot, std::uint32_t row);   that row has arrived (victims that were given to a row arrive too)
//   std::uint32_t victim(const std::uint32_t* row_of);   an occupied slot to evict, or no_slot; row_of[s] is UINT32_MAX for
//                                       slots that are empty: never victims
//   std::size_t bytes() const;
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tier/directory.hpp"

namespace slacktier {

inline constexpr std::uint32_t no_row = UINT32_MAX;

template <class Policy>
class DirectoryOf final : public Directory {
 public:
  DirectoryOf(std::uint64_t rows, std::uint32_t slots)
      : map_memory_(rows * sizeof(std::uint32_t)),
        row_memory_(std::max<std::size_t>(slots, 1) * sizeof(std::uint32_t)),
        map_(static_cast<std::uint32_t*>(map_memory_.data())),
        row_of_(static_cast<std::uint32_t*>(row_memory_.data())),
        policy_(slots) {
    rows_ = rows;
    slots_ = slots;
    std::memset(row_of_, 0xFF, slots * sizeof(std::uint32_t));
    free_.reserve(1024);
  }

  void begin_step() override { policy_.begin_step(); }

  ResolveCounts resolve(std::span<const std::uint32_t> lookups, std::span<const std::uint32_t> at,
                        std::span<Descriptor> descriptors, std::vector<Miss>& misses, std::vector<Reuse>& reuses,
                        bool reuse) override {
    ResolveCounts counts;
    const std::size_t first_miss = misses.size();
    const std::size_t n = lookups.size();
    if (hits_.size() < n) hits_.resize(n);
    // Every line is asked for long before it is used: the map's some lookups ahead, the policy's while the rest of the
    // lookups is read. The policy learns of the hits at the end, before any slot is given away.
    constexpr std::size_t ahead = 40;
    for (std::size_t i = 0; i < std::min(ahead, n); ++i) __builtin_prefetch(&map_[lookups[i]], 1);
    std::size_t hits = 0;
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
        const std::uint32_t slot = entry - 1;
        descriptors[at[i]] = Descriptor::hit(slot);
        policy_.prefetch(slot);
        hits_[hits++] = slot;
      }
    }
    for (std::size_t h = 0; h < hits; ++h) policy_.hit(hits_[h]);
    counts.hits = static_cast<std::uint32_t>(hits);
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

  std::uint32_t row_of(std::uint32_t slot) const override {
    const std::uint32_t row = row_of_[slot];
    return row != no_row && map_[row] == slot + 1 ? row : no_row;
  }
  std::uint32_t slot_of(std::uint32_t row) const override {
    const std::uint32_t entry = map_[row];
    return entry == 0 || (entry & pending) ? no_slot : entry - 1;
  }
  std::uint32_t occupied() const override { return occupied_; }
  std::size_t bytes() const override {
    return rows_ * sizeof(std::uint32_t) + slots_ * sizeof(std::uint32_t) + policy_.bytes();
  }

 private:
  static constexpr std::uint32_t pending = 1u << 31;
  static constexpr std::uint32_t unfilled = no_slot - 1;  // marks a repeated miss between resolve's two passes

  // Gives each miss a slot: failed reads' slots first, then slots never used in order, then victims; no_slot when every slot
  // was touched in this step.
  std::uint32_t place(std::span<Miss> misses) {
    if (evicted_.size() < misses.size()) evicted_.resize(misses.size());
    std::uint32_t victims = 0;
    for (Miss& miss : misses) {
      if (miss.slot == unfilled) {
        miss.slot = no_slot;
        continue;
      }
      std::uint32_t slot = no_slot;
      if (!free_.empty()) {
        slot = free_.back();
        free_.pop_back();
        policy_.reserve(slot);
      } else if (next_empty_ < slots_) {
        slot = next_empty_++;
        policy_.reserve(slot);
      } else if (slots_ > 0 && (slot = policy_.victim(row_of_)) != no_slot) {
        evicted_[victims++] = row_of_[slot];
        __builtin_prefetch(&map_[row_of_[slot]], 1);
      }
      miss.slot = slot;
      if (slot != no_slot) row_of_[slot] = miss.row;
    }
    for (std::uint32_t v = 0; v < victims; ++v) map_[evicted_[v]] = 0;
    occupied_ -= victims;
    return victims;
  }

  HostMemory map_memory_, row_memory_;
  std::uint32_t* map_;     // [rows] entry per row
  std::uint32_t* row_of_;  // [slots] row that a slot holds or awaits, no_row when empty
  Policy policy_;
  std::vector<std::uint32_t> free_;            // slots given back by failed reads
  std::vector<std::uint32_t> hits_, evicted_;  // of the resolve at hand: slots hit, rows evicted
  std::uint32_t next_empty_ = 0, occupied_ = 0;
};

}  // namespace slacktier
