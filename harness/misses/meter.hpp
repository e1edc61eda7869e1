// Counts hits, rows and pages of one or more cache capacities, and turns them into the points of a curve. Private to
// harness.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/misses/pieces.hpp"
#include "reports/misses_file.hpp"

namespace slacktier {

// What the counted part of a workload asked one rank for, whatever the cache.
struct Asked {
  std::array<std::vector<std::uint64_t>, 2> lookups;  // [prefill, decode][order], different rows of each piece
  std::array<std::vector<std::uint64_t>, 2> first;    // of these, where pieces know: rows that nothing had asked for before
  std::uint64_t units = 0;                            // steps, or chunks
};

class Meter {
 public:
  // Capacities rise; at most 250 of them.
  Meter(std::vector<std::uint64_t> capacities, std::vector<int> orders);
  // first_hit[i]: index of the smallest capacity that holds row i, the number of capacities where none does.
  void add(const Piece& piece, std::span<const std::uint8_t> first_hit);
  // Ends what pages are counted for: a step or a chunk.
  void end_unit();
  // `rate`: share of the rows that were sampled.
  std::vector<MissPoint> points(const Asked& asked, bool decode_counted, double rate, bool sampled) const;
  // Standard error of each capacity's hit rate, from eight groups of sampled rows.
  std::vector<double> sampling_errors(const Asked& asked, double rate) const;
  const std::vector<std::uint64_t>& capacities() const { return capacities_; }

 private:
  static constexpr std::size_t groups = 8;
  double misses(const Asked& asked, double rate, std::size_t phase, std::size_t order, std::size_t capacity) const;

  std::vector<std::uint64_t> capacities_;
  std::vector<int> orders_;
  // [prefill, decode][order][first hit]: lookups.
  std::array<std::vector<std::vector<std::uint64_t>>, 2> lookups_;
  std::array<std::vector<std::uint64_t>, groups> by_group_;  // [group][first hit]
  std::vector<std::uint32_t> unit_pages_;                    // [first hit] of the unit at hand
  std::vector<std::uint8_t> page_first_hit_;                 // of the piece at hand
  std::vector<std::vector<std::uint64_t>> histograms_;       // [capacity][pages]: units
};

}  // namespace slacktier
