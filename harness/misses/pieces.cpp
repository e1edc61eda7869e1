#include "harness/misses/pieces.hpp"

#include <algorithm>
#include <cstdint>

namespace slacktier {

PieceMaker::PieceMaker(const TableSpec& spec, const Shard& shard, std::uint32_t rows_per_page, std::uint64_t keep)
    : shard_(shard), rows_per_page_(rows_per_page), keep_(keep), orders_(spec.order) {
  std::sort(orders_.begin(), orders_.end());
  orders_.erase(std::unique(orders_.begin(), orders_.end()), orders_.end());
  for (const int order : spec.order)
    order_of_column_.push_back(
        static_cast<std::uint8_t>(std::lower_bound(orders_.begin(), orders_.end(), order) - orders_.begin()));
  asked_.resize(orders_.size());
}

std::uint8_t PieceMaker::order_of(std::uint32_t local_row) const {
  for (std::size_t c = 0; c < order_of_column_.size(); ++c)
    if (local_row >= shard_.local[c] && local_row - shard_.local[c] < shard_.last[c] - shard_.first[c])
      return order_of_column_[c];
  return 0;
}

Piece PieceMaker::make(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active, bool decode) {
  const std::size_t columns = order_of_column_.size(), tokens = rows.size() / columns;
  seen_.begin(rows.size());
  page_set_.begin(rows.size());
  rows_.clear();
  row_orders_.clear();
  pages_.clear();
  std::fill(asked_.begin(), asked_.end(), 0);
  for (std::size_t t = 0; t < tokens; ++t) {
    if (!active.empty() && !active[t]) continue;
    for (std::size_t c = 0; c < columns; ++c) {
      const std::uint32_t global = rows[t * columns + c];
      if (global < shard_.first[c] || global >= shard_.last[c]) continue;
      const std::uint32_t row = global - shard_.first[c] + shard_.local[c];
      const std::uint32_t before = seen_.count();
      if (seen_.insert(row) != before) continue;
      ++asked_[order_of_column_[c]];
      if (!sampled_row(row, keep_)) continue;
      rows_.push_back(row);
      row_orders_.push_back(order_of_column_[c]);
      pages_.push_back(page_set_.insert(row / rows_per_page_));
    }
  }
  return {rows_, row_orders_, pages_, page_set_.count(), decode};
}

}  // namespace slacktier
