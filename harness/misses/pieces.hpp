// What one rank's cache is asked at once: the different rows of one layer for the tokens of a decode step or of a chunk of
// prefill, and the pages they lie in. Private to harness.
#pragma once

#include <cmath>
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
  std::span<const std::uint32_t> pages;  // of each row: number of its page within the piece; may be empty
  std::uint32_t page_count = 0;
  bool decode = false;
  std::span<const std::uint8_t> first;  // 1: nothing asked for the row before; empty: not known
};

// Rows are kept for sampling by a hash of their own, `keep` in 2^-32ths of them: those of a smaller share are among those of
// a larger one.
inline std::uint64_t kept_of(double share) { return static_cast<std::uint64_t>(std::llround(share * 4294967296.0)); }
inline bool sampled_row(std::uint32_t row, std::uint64_t keep) {
  return ((row + std::uint64_t{1}) * 0xD6E8FEB86659FD93u >> 32) < keep;
}

// A smaller share of a piece's rows, without their pages. What it gives is a view until the next.
class PieceSample {
 public:
  Piece of(const Piece& piece, std::uint64_t keep) {
    const std::size_t n = piece.rows.size();
    if (rows_.size() < n) {
      rows_.resize(n);
      orders_.resize(n);
      first_.resize(n);
    }
    std::size_t kept = 0;
    for (std::size_t i = 0; i < n; ++i) {
      rows_[kept] = piece.rows[i];
      orders_[kept] = piece.orders[i];
      if (!piece.first.empty()) first_[kept] = piece.first[i];
      kept += sampled_row(piece.rows[i], keep);
    }
    return {
        {rows_.data(), kept}, {orders_.data(), kept}, {}, 0, piece.decode, {first_.data(), piece.first.empty() ? 0 : kept}};
  }

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<std::uint8_t> orders_, first_;
};

// What pieces know besides rows and orders: pages where nothing is left out; which rows nothing had asked for before, a bit
// a row of the shard, whatever share is kept; or neither.
enum class PieceFacts { pages, first, none };

class PieceMaker {
 public:
  // `share` of the rows that pieces have, 1: all.
  PieceMaker(const TableSpec& spec, const Shard& shard, std::uint32_t rows_per_page, double share, PieceFacts facts);
  // Of [tokens][columns] global rows, those that the shard owns; active[t] == 0 leaves token t out, empty: all are active.
  Piece make(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active, bool decode);
  // Different rows of the last piece by order, before sampling.
  std::span<const std::uint32_t> asked() const { return asked_; }
  // Of these, those that nothing had asked for before.
  std::span<const std::uint32_t> first_asked() const { return first_asked_; }
  const std::vector<int>& orders() const { return orders_; }  // rising
  std::uint8_t order_of(std::uint32_t local_row) const;

 private:
  bool keeps_all() const { return keep_ == std::uint64_t{1} << 32; }
  void look_first();

  const Shard& shard_;
  std::uint32_t rows_per_page_;
  std::uint64_t keep_;
  PieceFacts facts_;
  std::vector<int> orders_;
  std::vector<std::uint8_t> order_of_column_;
  StampSet seen_, page_set_;
  std::vector<std::uint32_t> rows_, pages_, asked_, first_asked_;
  std::vector<std::uint8_t> row_orders_, first_;
  std::vector<std::uint64_t> known_;  // bit of a row: it was asked for
  PieceSample sample_;
};

}  // namespace slacktier
