// LRU at one capacity, exactly, as fast as memory answers: one cache line a lookup.
//
// Lookups are numbered. A hash table in lines of eight entries holds each row's last lookup; a row is cached if that lookup
// lies behind the cache's tail. Which lookups are a cached row's last is one bit each in a ring that is small enough for the
// CPU's caches, and the tail is the oldest of them: evicting moves it on and never touches the table. What lies before the
// tail is free for other rows. So a lookup reads one line of the table, asked for long before, and no list is kept.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "platforms/memory.hpp"

namespace slacktier {

class LruCache {
 public:
  // Of `capacity` rows, at least 1, fewer than 2^30: UsageError otherwise. Memory is 24 bytes a row of capacity and 1 to
  // 2 more, in huge pages where the system grants them.
  explicit LruCache(std::uint64_t capacity);

  // Rows (< 2^32 - 1) of one step, all different: hit[i] says whether row i was cached before the step; then all of them are
  // the most recent ones, the last of them the most recent. As StackDistances::step with distances below the capacity.
  void step(std::span<const std::uint32_t> rows, std::span<std::uint8_t> hit);
  // One lookup after another, as caches that serve single requests have it; returns the number of hits.
  std::uint64_t look_up(std::span<const std::uint32_t> rows);

  std::uint64_t held() const { return live_; }
  std::size_t bytes() const {
    return lines_memory_.bytes() + (ring_.capacity() + overflowed_.capacity()) * 8 + sizeof(*this);
  }

 private:
  static constexpr std::uint32_t entries = 8;
  struct alignas(64) Line {
    std::array<std::uint32_t, entries> row, last;  // last lookup; 0: never used
  };

  static std::uint64_t hash(std::uint32_t row) { return (row + std::uint64_t{1}) * 0x9E3779B97F4A7C15u; }
  std::uint32_t line_of(std::uint32_t row) const {
    return static_cast<std::uint32_t>(((hash(row) >> 32) * line_count_) >> 32);
  }
  bool holds(std::uint32_t row) const;
  bool touch(std::uint32_t row, std::uint32_t at);
  bool touch_further(std::uint32_t row, std::uint32_t at, std::uint32_t line);
  bool enter(Line& line, std::uint32_t row, std::uint32_t at);
  void mark(std::uint32_t at) { ring_[(at & mask_) / 64] |= std::uint64_t{1} << (at % 64); }
  void unmark(std::uint32_t at) { ring_[(at & mask_) / 64] &= ~(std::uint64_t{1} << (at % 64)); }
  void overflow(std::uint32_t line);
  void evict();
  void make_room(std::size_t lookups);
  void renumber(std::size_t ring_bits);

  std::uint32_t capacity_, line_count_;
  HostMemory lines_memory_;
  Line* lines_;
  std::vector<std::uint64_t> overflowed_;  // bit of a line: rows whose line it is lie behind it, too
  std::vector<std::uint64_t> ring_;        // bit of a lookup: the last one of a cached row
  std::uint32_t mask_ = 0;                 // of the ring, bits - 1
  std::uint32_t next_ = 1, tail_ = 1, live_ = 0;
  // Bits of overflowed_, and how many of them it takes until renumber() takes rows back to their lines.
  std::uint32_t overflows_ = 0, overflows_allowed_ = 0;
};

}  // namespace slacktier
