#include "iobench/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "platforms/error.hpp"
#include "reports/averages.hpp"
#include "reports/probability.hpp"

namespace slacktier {
namespace {

// Inverse of a small symmetric positive matrix by Gauss-Jordan with pivoting; empty when it is singular.
std::vector<std::vector<double>> inverse(std::vector<std::vector<double>> m) {
  const std::size_t n = m.size();
  std::vector<std::vector<double>> result(n, std::vector<double>(n, 0));
  for (std::size_t i = 0; i < n; ++i) result[i][i] = 1;
  double largest = 0;
  for (const auto& row : m)
    for (const double value : row) largest = std::max(largest, std::abs(value));
  for (std::size_t c = 0; c < n; ++c) {
    std::size_t pivot = c;
    for (std::size_t r = c + 1; r < n; ++r)
      if (std::abs(m[r][c]) > std::abs(m[pivot][c])) pivot = r;
    if (std::abs(m[pivot][c]) < 1e-12 * largest) return {};
    std::swap(m[c], m[pivot]);
    std::swap(result[c], result[pivot]);
    const double scale = m[c][c];
    for (std::size_t j = 0; j < n; ++j) {
      m[c][j] /= scale;
      result[c][j] /= scale;
    }
    for (std::size_t r = 0; r < n; ++r) {
      if (r == c) continue;
      const double factor = m[r][c];
      for (std::size_t j = 0; j < n; ++j) {
        m[r][j] -= factor * m[c][j];
        result[r][j] -= factor * result[c][j];
      }
    }
  }
  return result;
}

struct Observation {
  std::vector<double> x;  // 1, then pages in thousands of each layer of the fit
  double t = 0;           // us
};

}  // namespace

std::map<int, std::int64_t> pages_by_layer(const std::vector<LayerPages>& pages) {
  std::map<int, std::int64_t> by_layer;
  for (const LayerPages& layer : pages) by_layer[layer.layer] = layer.pages;
  return by_layer;
}

ReadFit fit_read_time(int k, std::span<const PointSamples> points) {
  ReadFit fit;
  fit.k = k;
  std::vector<const PointSamples*> used;
  for (const PointSamples& point : points) {
    const auto pages = pages_by_layer(point.pages);
    if (pages.contains(k) && pages.at(k) > 0 && !point.wall_us.empty()) used.push_back(&point);
  }
  for (const PointSamples* point : used)
    for (const auto& [layer, pages] : pages_by_layer(point->pages)) {
      auto [found, added] = fit.range.try_emplace(layer, pages, pages);
      found->second.first = std::min(found->second.first, pages);
      found->second.second = std::max(found->second.second, pages);
    }
  std::vector<int> varied;
  for (const auto& [layer, pages] : fit.range)
    if (pages.first < pages.second) varied.push_back(layer);
  const std::size_t parameters = 1 + varied.size();
  if (used.size() < parameters + 1)
    throw UsageError(fmt::format("fit of layer {}: {} points for {} parameters; measure at least {} different loads", k,
                                 used.size(), parameters, parameters + 1));
  std::vector<Observation> observations;
  for (const PointSamples* point : used) {
    const auto pages = pages_by_layer(point->pages);
    Observation o;
    o.x.push_back(1);
    // Thousands of pages: near 1, so that the matrix is well scaled.
    for (const int layer : varied) o.x.push_back(static_cast<double>(pages.at(layer)) / 1e3);
    for (std::size_t l = 0; l < point->pages.size(); ++l)
      if (point->pages[l].layer == k) o.t = mean(point->t_us[l]);
    observations.push_back(o);
  }
  std::vector<std::vector<double>> xx(parameters, std::vector<double>(parameters, 0));
  std::vector<double> xt(parameters, 0);
  for (const Observation& o : observations)
    for (std::size_t i = 0; i < parameters; ++i) {
      xt[i] += o.x[i] * o.t;
      for (std::size_t j = 0; j < parameters; ++j) xx[i][j] += o.x[i] * o.x[j];
    }
  const auto inverted = inverse(xx);
  if (inverted.empty())
    throw UsageError(fmt::format("fit of layer {}: the pages of layers {} vary only together; vary each by itself", k,
                                 fmt::join(varied, ", ")));
  std::vector<double> solution(parameters, 0);
  for (std::size_t i = 0; i < parameters; ++i)
    for (std::size_t j = 0; j < parameters; ++j) solution[i] += inverted[i][j] * xt[j];
  double squares = 0, total = 0, average = 0;
  for (const Observation& o : observations) average += o.t / static_cast<double>(observations.size());
  for (const Observation& o : observations) {
    const double fitted = std::inner_product(o.x.begin(), o.x.end(), solution.begin(), 0.0);
    squares += (o.t - fitted) * (o.t - fitted);
    total += (o.t - average) * (o.t - average);
  }
  const auto freedom = static_cast<double>(observations.size() - parameters);
  if (total > 0) fit.r2 = 1 - squares / total;
  fit.rmse_us = std::sqrt(squares / static_cast<double>(observations.size()));
  const double t95 = student_quantile(0.975, freedom);
  const auto width = [&](std::size_t i) { return t95 * std::sqrt(squares / freedom * inverted[i][i]); };
  fit.a_us = solution[0];
  fit.a_lo_us = solution[0] - width(0);
  fit.a_hi_us = solution[0] + width(0);
  for (std::size_t i = 0; i < varied.size(); ++i) {
    fit.b_us[varied[i]] = solution[i + 1] / 1e3;
    fit.b_lo_us[varied[i]] = (solution[i + 1] - width(i + 1)) / 1e3;
    fit.b_hi_us[varied[i]] = (solution[i + 1] + width(i + 1)) / 1e3;
  }
  return fit;
}

}  // namespace slacktier
