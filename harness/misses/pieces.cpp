#include "harness/misses/pieces.hpp"

#include <algorithm>
#include <cstdint>

namespace slacktier {

PieceMaker::PieceMaker(const TableSpec& spec, const Shard& shard, std::uint32_t rows_per_page, double share,
                       PieceFacts facts)
    : shard_(shard), rows_per_page_(rows_per_page), keep_(kept_of(share)), facts_(facts), orders_(spec.order) {
  std::sort(orders_.begin(), orders_.end());
  orders_.erase(std::unique(orders_.begin(), orders_.end()), orders_.end());
  for (const int order : spec.order)
    order_of_column_.push_back(
        static_cast<std::uint8_t>(std::lower_bound(orders_.begin(), orders_.end(), order) - orders_.begin()));
  asked_.resize(orders_.size());
  first_asked_.resize(orders_.size());
  if (facts == PieceFacts::first) known_.resize(shard.rows / 64 + 1);
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
      rows_.push_back(row);
      row_orders_.push_back(order_of_column_[c]);
    }
  }
  if (facts_ == PieceFacts::pages) {
    page_set_.begin(rows_.size());
    for (const std::uint32_t row : rows_) pages_.push_back(page_set_.insert(row / rows_per_page_));
    return {rows_, row_orders_, pages_, page_set_.count(), decode, {}};
  }
  if (facts_ == PieceFacts::first) look_first();
  return sample_.of({rows_, row_orders_, {}, 0, decode, first_}, keep_);
}

void PieceMaker::look_first() {
  constexpr std::size_t ahead = 24;
  std::fill(first_asked_.begin(), first_asked_.end(), 0);
  first_.resize(rows_.size());
  for (std::size_t i = 0; i < std::min(ahead, rows_.size()); ++i) __builtin_prefetch(&known_[rows_[i] / 64], 1);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (i + ahead < rows_.size()) __builtin_prefetch(&known_[rows_[i + ahead] / 64], 1);
    std::uint64_t& word = known_[rows_[i] / 64];
    const std::uint64_t bit = std::uint64_t{1} << (rows_[i] % 64);
    first_[i] = (word & bit) == 0;
    word |= bit;
    first_asked_[row_orders_[i]] += first_[i];
  }
}

}  // namespace slacktier
