#include <algorithm>
#include <cmath>
#include <utility>

#include "reports/error.hpp"
#include "reports/probability.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

constexpr std::size_t max_exact_pairs = 2500;

// P(U >= u) when all orders of the n + m values are equally likely: Mann and Whitney's recurrence on the largest value,
// which is either one of the first n (and exceeds all m others) or one of the m.
double exact_upper_tail(std::size_t n, std::size_t m, std::size_t u) {
  const std::size_t width = n * m + 1;
  // row[j][v]: probability of U = v for i values of the first side and j of the second.
  std::vector<std::vector<double>> row(m + 1, std::vector<double>(width, 0.0));
  for (auto& distribution : row) distribution[0] = 1;
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= m; ++j) {
      const double first = static_cast<double>(i) / static_cast<double>(i + j);
      for (std::size_t v = width; v-- > 0;) row[j][v] = first * (v >= j ? row[j][v - j] : 0.0) + (1 - first) * row[j - 1][v];
    }
  }
  double tail = 0;
  for (std::size_t v = width; v-- > u;) tail += row[m][v];
  return tail;
}

}  // namespace

MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) throw InputError("Mann-Whitney test: one side has no values");
  std::vector<std::pair<double, bool>> all;  // value, of a
  for (const double value : a) all.push_back({value, true});
  for (const double value : b) all.push_back({value, false});
  for (const auto& [value, of_a] : all)
    if (std::isnan(value)) throw InputError("Mann-Whitney test: a value is not a number");
  std::sort(all.begin(), all.end());

  const double n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), total = n + m;
  double rank_sum = 0, ties = 0;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    std::size_t of_a = 0;
    for (end = begin; end < all.size() && all[end].first == all[begin].first; ++end) of_a += all[end].second;
    const double count = static_cast<double>(end - begin);
    rank_sum += static_cast<double>(of_a) * (static_cast<double>(begin + end + 1) / 2);
    ties += count * count * count - count;
  }

  MannWhitney result;
  result.u = rank_sum - n * (n + 1) / 2;
  const double larger = std::max(result.u, n * m - result.u);
  if (ties == 0 && a.size() * b.size() <= max_exact_pairs) {
    result.exact = true;
    result.p = std::min(1.0, 2 * exact_upper_tail(a.size(), b.size(), static_cast<std::size_t>(larger)));
    return result;
  }
  const double deviation = std::sqrt(n * m / 12 * (total + 1 - ties / (total * (total - 1))));
  if (!(deviation > 0)) return result;  // all equal
  result.p = std::min(1.0, 2 * normal_cdf(-(larger - n * m / 2 - 0.5) / deviation));
  return result;
}

}  // namespace slacktier
