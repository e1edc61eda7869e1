#include "harness/row_counts.hpp"

#include <algorithm>
#include <cstdint>

namespace slacktier {

void RowCounts::add(std::span<const std::uint32_t> rows) {
  fresh_.insert(fresh_.end(), rows.begin(), rows.end());
  // A merge passes over all rows: seldom enough that it costs a lookup little.
  if (fresh_.size() > std::max<std::size_t>(1 << 20, counted_.size() / 4)) merge();
}

void RowCounts::merge() {
  std::sort(fresh_.begin(), fresh_.end());
  std::vector<Counted> merged;
  merged.reserve(counted_.size() + fresh_.size());
  std::size_t old = 0;
  for (std::size_t i = 0; i < fresh_.size();) {
    const std::uint32_t row = fresh_[i];
    while (old < counted_.size() && counted_[old].row < row) merged.push_back(counted_[old++]);
    Counted next{row, 0};
    if (old < counted_.size() && counted_[old].row == row) next = counted_[old++];
    for (; i < fresh_.size() && fresh_[i] == row; ++i) ++next.count;
    merged.push_back(next);
  }
  merged.insert(merged.end(), counted_.begin() + static_cast<std::ptrdiff_t>(old), counted_.end());
  merged.shrink_to_fit();
  counted_ = std::move(merged);
  fresh_.clear();
}

std::vector<std::uint32_t> RowCounts::hottest(std::size_t n) {
  merge();
  std::vector<Counted> order = counted_;
  n = std::min(n, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(),
      [](const Counted& a, const Counted& b) { return a.count != b.count ? a.count > b.count : a.row < b.row; });
  std::vector<std::uint32_t> rows(n);
  for (std::size_t i = 0; i < n; ++i) rows[i] = order[i].row;
  return rows;
}

}  // namespace slacktier
