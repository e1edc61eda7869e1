// Exact LRU stack distances in one pass: for each lookup, how many other rows were asked for since its row was. A cache of C
// rows under LRU holds a row whose distance is below C, so one pass gives the hit rate of every capacity.
//
// Each row's last lookup is a set bit on an axis of lookups; a distance is the number of set bits behind it, counted by
// population counts in blocks and a Fenwick tree over groups of blocks. (After Bennett and Kruskal, "LRU stack processing",
// IBM J. Res. Dev. 19, 1975.) The axis is renumbered when it is full.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace slacktier {

class StackDistances {
 public:
  static constexpr std::uint32_t never = UINT32_MAX;  // distance of a row's first lookup

  StackDistances();
  // Looks all of `rows` (all different, < 2^32 - 1) up as they stand before the step, then makes them the most recent ones,
  // the last of them the most recent. distances[i] is row i's.
  void step(std::span<const std::uint32_t> rows, std::span<std::uint32_t> distances);

  std::uint64_t distinct() const { return distinct_; }
  // Memory held: at most 24 bytes a distinct row from 100,000 rows on.
  std::size_t bytes() const;

 private:
  struct Entry {
    std::uint32_t row, position;  // position 0: empty
  };
  // A part of the hash table; each grows for itself, so that growing never holds the table twice.
  struct Part {
    std::vector<Entry> entries;
    std::uint32_t used = 0;
  };
  static constexpr std::size_t parts = 256;
  static constexpr std::size_t block_words = 8, group_blocks = 64, group_bits = block_words * 64 * group_blocks;

  static std::uint64_t hash(std::uint32_t row) { return (row + std::uint64_t{1}) * 0x9E3779B97F4A7C15u; }
  Entry* find(std::uint32_t row);
  void insert(std::uint32_t row, std::uint32_t position);
  void prefetch(std::uint32_t row) const;
  std::uint32_t up_to(std::uint32_t position) const;  // set bits at positions <= position
  void set(std::uint32_t position);
  void clear(std::uint32_t position);
  void count_group(std::size_t group, std::uint32_t change);
  void renumber(std::size_t room);

  std::array<Part, parts> parts_;
  std::vector<std::uint64_t> words_;
  std::vector<std::uint16_t> blocks_;  // set bits of each block
  std::vector<std::uint32_t> groups_;  // Fenwick tree over groups of blocks, from 1
  std::uint32_t next_ = 1;             // position of the next lookup
  std::uint32_t distinct_ = 0;
};

}  // namespace slacktier
