// What one rank's cache is asked at once: the different rows of one layer for the tokens of a decode step or of a chunk of
// prefill, and the pages they lie in. Private to harness.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/misses/stamp_set.hpp"
#include "tier/pages.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

// Views into a PieceMaker, until its next make().
struct Piece {
  std::span<const std::uint32_t> rows;   // local, each once, in the order of their first lookup; when sampled, those kept
  std::span<const std::uint8_t> orders;  // of each row: index among the table's n-gram orders
  std::span<const std::uint32_t> pages;  // of each row: number of its page within the piece
  std::uint32_t page_count = 0;
  bool decode = false;
};

// Rows are kept for sampling by a hash of their own; this is the share kept in 2^-32ths.
inline bool sampled_row(std::uint32_t row, std::uint64_t keep) {
  return ((row + std::uint64_t{1}) * 0xD6E8FEB86659FD93u >> 32) < keep;
}

class PieceMaker {
 public:
  // `keep`: see sampled_row; 2^32 keeps all.
  PieceMaker(const TableSpec& spec, const Shard& shard, std::uint32_t rows_per_page, std::uint64_t keep);
  // Of [tokens][columns] global rows, those that the shard owns; active[t] == 0 leaves token t out, empty: all are active.
  Piece make(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active, bool decode);
  // Different rows of the last piece by order, before sampling.
  std::span<const std::uint32_t> asked() const { return asked_; }
  const std::vector<int>& orders() const { return orders_; }  // rising
  std::uint8_t order_of(std::uint32_t local_row) const;

 private:
  const Shard& shard_;
  std::uint32_t rows_per_page_;
  std::uint64_t keep_;
  std::vector<int> orders_;
  std::vector<std::uint8_t> order_of_column_;
  StampSet seen_, page_set_;
  std::vector<std::uint32_t> rows_, pages_, asked_;
  std::vector<std::uint8_t> row_orders_;
};

}  // namespace slacktier
