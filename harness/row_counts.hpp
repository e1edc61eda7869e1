// How often rows were asked for: what a static cache learns its hot set from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace slacktier {

// Memory is 8 bytes for each different row, and 4 for each lookup since the last merge (a quarter of the rows at most).
class RowCounts {
 public:
  void add(std::span<const std::uint32_t> rows);
  // The n rows asked for most, most first; of equal counts the lower row first.
  std::vector<std::uint32_t> hottest(std::size_t n);

 private:
  void merge();
  struct Counted {
    std::uint32_t row = 0, count = 0;
  };
  std::vector<Counted> counted_;      // by row
  std::vector<std::uint32_t> fresh_;  // lookups not yet in counted_
};

}  // namespace slacktier
