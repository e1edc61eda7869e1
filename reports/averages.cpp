#include "reports/averages.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "reports/error.hpp"

namespace slacktier {

double mean(std::span<const double> values) {
  if (values.empty()) throw InputError("a mean of nothing");
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::span<const double> values) {
  std::vector<double> sorted(values.begin(), values.end());
  if (sorted.empty()) throw InputError("a median of nothing");
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (sorted.size() % 2 == 1) return *middle;
  return (*std::max_element(sorted.begin(), middle) + *middle) / 2;
}

}  // namespace slacktier
