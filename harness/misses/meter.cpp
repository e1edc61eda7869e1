#include "harness/misses/meter.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace slacktier {

Meter::Meter(std::vector<std::uint64_t> capacities, std::vector<int> orders)
    : capacities_(std::move(capacities)), orders_(std::move(orders)) {
  const std::size_t classes = capacities_.size() + 1;
  for (auto& phase : lookups_) phase.assign(orders_.size(), std::vector<std::uint64_t>(classes, 0));
  for (auto& group : by_group_) group.assign(classes, 0);
  unit_pages_.assign(classes, 0);
  histograms_.resize(capacities_.size());
}

void Meter::add(const Piece& piece, std::span<const std::uint8_t> first_hit) {
  auto& lookups = lookups_[piece.decode];
  page_first_hit_.assign(piece.page_count, 0);
  for (std::size_t i = 0; i < piece.rows.size(); ++i) {
    if (piece.first.empty() || !piece.first[i]) {
      ++lookups[piece.orders[i]][first_hit[i]];
      ++by_group_[(piece.rows[i] * 0x9E3779B97F4A7C15u >> 40) % groups][first_hit[i]];
    }
    if (piece.pages.empty()) continue;
    // A page is read where any of its rows is missed.
    std::uint8_t& page = page_first_hit_[piece.pages[i]];
    page = std::max(page, first_hit[i]);
  }
  for (const std::uint8_t page : page_first_hit_) ++unit_pages_[page];
}

void Meter::end_unit() {
  std::uint32_t pages = 0;
  for (std::size_t c = capacities_.size(); c-- > 0;) {
    pages += unit_pages_[c + 1];
    if (histograms_[c].size() <= pages) histograms_[c].resize(pages + 1, 0);
    ++histograms_[c][pages];
  }
  std::fill(unit_pages_.begin(), unit_pages_.end(), 0);
}

double Meter::misses(const Asked& asked, double rate, std::size_t phase, std::size_t order, std::size_t capacity) const {
  const auto& counts = lookups_[phase][order];
  std::uint64_t sum = 0;
  for (std::size_t c = capacity + 1; c < counts.size(); ++c) sum += counts[c];
  return static_cast<double>(asked.first[phase][order]) + static_cast<double>(sum) / rate;
}

std::vector<MissPoint> Meter::points(const Asked& asked, bool decode_counted, double rate, bool sampled) const {
  std::vector<MissPoint> points;
  bool nothing = false;  // no cache: no hit, whatever was sampled
  // Sampled rows stand for `rate` of the lookups expected, not of those that came: rows that are asked for very often are in
  // the sample or not, and would shift the curve as a whole (Waldspurger and others, FAST 2015, SHARDS-adj).
  const auto hit = [&](double misses, std::uint64_t lookups) -> std::optional<double> {
    if (lookups == 0) return {};
    if (nothing) return 0.0;
    return std::clamp(1 - misses / static_cast<double>(lookups), 0.0, 1.0);
  };
  for (std::size_t c = 0; c < capacities_.size(); ++c) {
    MissPoint point;
    point.rows = capacities_[c];
    nothing = point.rows == 0;
    double all_misses = 0, decode_misses = 0;
    std::uint64_t all_lookups = 0, decode_lookups = 0;
    for (std::size_t o = 0; o < orders_.size(); ++o) {
      const double decode = misses(asked, rate, 1, o, c), both = misses(asked, rate, 0, o, c) + decode;
      const std::uint64_t lookups = asked.lookups[0][o] + asked.lookups[1][o];
      decode_misses += decode;
      decode_lookups += asked.lookups[1][o];
      all_misses += both;
      all_lookups += lookups;
      if (lookups > 0) point.hit_by_order[orders_[o]] = hit(both, lookups);
    }
    point.hit = hit(all_misses, all_lookups);
    if (decode_counted) point.decode_hit = hit(decode_misses, decode_lookups);
    if (!point.decode_hit) point.reason = decode_counted ? "no decode lookups" : "decode_hit: prefill alone was counted";
    const auto units = static_cast<double>(asked.units);
    if (asked.units > 0) point.misses_mean = all_misses / units;
    if (sampled) {
      point.pages_mean = point.misses_mean;
      point.reason += std::string(point.reason.empty() ? "" : "; ") +
                      "pages_p99, p_any_miss: sampled rows do not tell; pages_mean: rows, each its own page";
    } else if (asked.units > 0) {
      const auto& histogram = histograms_[c];
      double sum = 0;
      std::uint64_t below = 0;
      for (std::size_t pages = 0; pages < histogram.size(); ++pages) {
        sum += static_cast<double>(pages) * static_cast<double>(histogram[pages]);
        below += histogram[pages];
        if (!point.pages_p99 && static_cast<double>(below) >= 0.99 * units) point.pages_p99 = static_cast<double>(pages);
      }
      point.pages_mean = sum / units;
      point.p_any_miss = 1 - (histogram.empty() ? 0.0 : static_cast<double>(histogram[0]) / units);
    }
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<double> Meter::sampling_errors(const Asked& asked, double rate) const {
  double lookups = 0;
  for (const auto& phase : asked.lookups)
    for (const std::uint64_t count : phase) lookups += static_cast<double>(count);
  std::vector<double> errors(capacities_.size(), 0);
  if (lookups == 0) return errors;
  const double expected = rate * lookups / groups;
  for (std::size_t c = 0; c < capacities_.size(); ++c) {
    if (capacities_[c] == 0) continue;
    double sum = 0, squares = 0;
    for (const auto& group : by_group_) {
      double misses = 0;
      for (std::size_t k = c + 1; k < group.size(); ++k) misses += static_cast<double>(group[k]);
      sum += misses / expected;
      squares += misses / expected * (misses / expected);
    }
    const double mean = sum / groups, variance = std::max(0.0, squares / groups - mean * mean) / (groups - 1);
    errors[c] = std::sqrt(variance);
  }
  return errors;
}

}  // namespace slacktier
