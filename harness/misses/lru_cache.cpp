#include "harness/lru_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t no_row = UINT32_MAX;
constexpr std::size_t ahead = 24;  // lookups whose lines are on their way

std::uint32_t checked(std::uint64_t capacity) {
  if (capacity == 0 || capacity >= (std::uint64_t{1} << 30))
    throw UsageError(fmt::format("an LRU cache of {} rows: from 1 to 2^30 - 1 are possible", capacity));
  return static_cast<std::uint32_t>(capacity);
}

// Index of the entry that holds the row, `count` where none does; without a branch.
template <std::size_t count>
std::uint32_t find(const std::array<std::uint32_t, count>& rows, std::uint32_t row) {
  std::uint32_t matches = 0;
  for (std::uint32_t i = 0; i < count; ++i) matches |= static_cast<std::uint32_t>(rows[i] == row) << i;
  return static_cast<std::uint32_t>(std::countr_zero(matches | (1u << count)));
}

}  // namespace

LruCache::LruCache(std::uint64_t capacity)
    : capacity_(checked(capacity)),
      line_count_(static_cast<std::uint32_t>(std::uint64_t{capacity_} * 3 / entries) + 2),
      lines_memory_(line_count_ * sizeof(Line)),
      lines_(static_cast<Line*>(lines_memory_.data())),
      overflowed_(line_count_ / 64 + 1, 0) {
  renumber(std::bit_ceil(std::max<std::size_t>(4096, 4 * std::size_t{capacity_})));
}

// The row is not cached. Takes the entry that it left in this line, so that no line has two of a row; else the one that was
// looked up longest ago, if its row is cached no more.
inline bool LruCache::enter(Line& line, std::uint32_t row, std::uint32_t at) {
  std::uint32_t oldest = find(line.row, row);
  if (oldest == entries) {
    oldest = 0;
    for (std::uint32_t i = 1; i < entries; ++i) oldest = line.last[i] < line.last[oldest] ? i : oldest;
    if (line.last[oldest] >= tail_) return false;
  }
  line.row[oldest] = row;
  line.last[oldest] = at;
  ++live_;
  return true;
}

// Behind the row's own line: whatever of it is cached there, else the first entry that is free.
bool LruCache::touch_further(std::uint32_t row, std::uint32_t at, std::uint32_t line) {
  const std::uint32_t own = line;
  while ((overflowed_[line / 64] >> (line % 64)) & 1) {
    line = line + 1 == line_count_ ? 0 : line + 1;
    if (line == own) break;
    const std::uint32_t i = find(lines_[line].row, row);
    if (i == entries || lines_[line].last[i] < tail_) continue;
    unmark(lines_[line].last[i]);
    lines_[line].last[i] = at;
    return true;
  }
  for (line = own; !enter(lines_[line], row, at); line = line + 1 == line_count_ ? 0 : line + 1) overflow(line);
  return false;
}

inline bool LruCache::touch(std::uint32_t row, std::uint32_t at) {
  const std::uint32_t number = line_of(row);
  Line& line = lines_[number];
  const std::uint32_t i = find(line.row, row);
  if (i < entries && line.last[i] >= tail_) {
    unmark(line.last[i]);
    line.last[i] = at;
    return true;
  }
  if (((overflowed_[number / 64] >> (number % 64)) & 1) == 0 && enter(line, row, at)) return false;
  return touch_further(row, at, number);
}

inline void LruCache::evict() {
  while (live_ > capacity_) {
    std::uint64_t word = ring_[(tail_ & mask_) / 64] >> (tail_ % 64);
    while (word == 0) {
      tail_ = (tail_ | 63) + 1;
      word = ring_[(tail_ & mask_) / 64];
    }
    tail_ += static_cast<std::uint32_t>(std::countr_zero(word));
    unmark(tail_++);
    --live_;
  }
}

// The cached rows' last lookups become 1 … live, in their order, in a ring of so many bits.
void LruCache::renumber(std::size_t ring_bits) {
  std::vector<std::uint32_t> before(ring_.size() + 1, 0);  // marks before each word, counted from the tail's
  const std::size_t words = ring_.size(), first = (tail_ & mask_) / 64;
  for (std::size_t w = 0; w < words; ++w)
    before[w + 1] = before[w] + static_cast<std::uint32_t>(std::popcount(ring_[(first + w) % words]));
  const auto rank = [&](std::uint32_t at) {
    const std::size_t word = (at & mask_) / 64, turn = (word + words - first) % words;
    return before[turn] + static_cast<std::uint32_t>(std::popcount(ring_[word] << (63 - at % 64)));
  };
  std::fill(overflowed_.begin(), overflowed_.end(), 0);
  overflows_ = 0;
  for (std::uint32_t l = 0; live_ > 0 && l < line_count_; ++l)
    for (std::uint32_t i = 0; i < entries; ++i) {
      std::uint32_t& row = lines_[l].row[i];
      std::uint32_t& last = lines_[l].last[i];
      last = last < tail_ ? 0 : rank(last);
      if (last == 0) row = no_row;
      const std::uint32_t own = line_of(row);
      if (last == 0 || own == l) continue;
      // Back to its own line, if that has been done and has become free.
      const std::uint32_t free = own < l ? find(lines_[own].last, 0u) : entries;
      if (free < entries) {
        lines_[own].row[free] = row;
        lines_[own].last[free] = last;
        row = no_row;
        last = 0;
        continue;
      }
      for (std::uint32_t at = own; at != l; at = at + 1 == line_count_ ? 0 : at + 1) overflow(at);
    }
  overflows_allowed_ = overflows_ + line_count_ / 8 + 8;
  ring_.assign(ring_bits / 64, 0);
  mask_ = static_cast<std::uint32_t>(ring_bits - 1);
  tail_ = 1;
  next_ = live_ + 1;
  for (std::uint32_t at = 1; at < next_; ++at) mark(at);
}

void LruCache::overflow(std::uint32_t line) {
  std::uint64_t& word = overflowed_[line / 64];
  const std::uint64_t bit = std::uint64_t{1} << (line % 64);
  overflows_ += (word & bit) == 0;
  word |= bit;
}

void LruCache::make_room(std::size_t lookups) {
  // The tail's word must not be written again before the tail has left it.
  const std::size_t needed = std::size_t{live_} + lookups + 128;
  if (next_ - tail_ + lookups + 128 <= ring_.size() * 64 && next_ + lookups < UINT32_MAX && overflows_ <= overflows_allowed_)
    return;
  renumber(std::max(ring_.size() * 64, std::bit_ceil(needed)));
}

bool LruCache::holds(std::uint32_t row) const {
  for (std::uint32_t line = line_of(row), own = line;;) {
    const std::uint32_t i = find(lines_[line].row, row);
    if (i < entries && lines_[line].last[i] >= tail_) return true;
    if (((overflowed_[line / 64] >> (line % 64)) & 1) == 0) return false;
    line = line + 1 == line_count_ ? 0 : line + 1;
    if (line == own) return false;
  }
}

void LruCache::step(std::span<const std::uint32_t> rows, std::span<std::uint8_t> hit) {
  const std::size_t n = rows.size();
  if (n > capacity_ / 2) {
    // The table has no room for as many beside those cached before. What is cached afterwards is the same.
    for (std::size_t i = 0; i < n; ++i) hit[i] = holds(rows[i]);
    look_up(rows);
    return;
  }
  make_room(n);
  for (std::size_t i = 0; i < std::min(ahead, n); ++i) __builtin_prefetch(&lines_[line_of(rows[i])], 1);
  for (std::size_t i = 0; i < n; ++i) {
    if (i + ahead < n) __builtin_prefetch(&lines_[line_of(rows[i + ahead])], 1);
    hit[i] = touch(rows[i], next_);
    mark(next_++);
  }
  evict();
}

std::uint64_t LruCache::look_up(std::span<const std::uint32_t> rows) {
  constexpr std::size_t block = 4096;
  std::uint64_t hits = 0;
  for (std::size_t begin = 0; begin < rows.size(); begin += block) {
    const std::size_t end = std::min(begin + block, rows.size());
    make_room(end - begin);
    for (std::size_t i = begin; i < std::min(begin + ahead, end); ++i) __builtin_prefetch(&lines_[line_of(rows[i])], 1);
    for (std::size_t i = begin; i < end; ++i) {
      if (i + ahead < end) __builtin_prefetch(&lines_[line_of(rows[i + ahead])], 1);
      hits += touch(rows[i], next_);
      mark(next_++);
      evict();
    }
  }
  return hits;
}

}  // namespace slacktier
