// LRU at one capacity over a share of the rows, in a cache of as small a share: a miniature simulation (Waldspurger,
// Saemundsson, Ahmad, Park, "Cache modeling and optimization using miniature simulations", USENIX ATC 2017). Where the share
// is all of the rows it is exact. Private to harness.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/lru_cache.hpp"
#include "harness/misses/meter.hpp"
#include "harness/misses/pieces.hpp"

namespace slacktier {

class Miniature {
 public:
  Miniature(std::uint64_t capacity, double share, const std::vector<int>& orders)
      : share_(share),
        cache_(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(static_cast<double>(capacity) * share)))),
        meter_({capacity}, orders) {}

  // A piece of at least this share of the rows; gives what this one took of it, until the next.
  Piece take(const Piece& given, bool counted) {
    const Piece piece = share_ < 1 ? sample_.of(given, kept_of(share_)) : given;
    hit_.resize(piece.rows.size());
    cache_.step(piece.rows, hit_);
    if (counted) {
      for (std::uint8_t& hit : hit_) hit = !hit;  // index of the smallest capacity that holds the row, of one
      meter_.add(piece, hit_);
    }
    return piece;
  }
  void end_unit() { meter_.end_unit(); }

  // `sampled`: of a workload of which others follow a sample; pages are not known then.
  MissPoint point(const Asked& asked, bool decode_counted, bool sampled) const {
    return meter_.points(asked, decode_counted, share_, sampled).front();
  }
  double error(const Asked& asked) const { return share_ < 1 ? meter_.sampling_errors(asked, share_).front() : 0; }

 private:
  double share_;
  LruCache cache_;
  Meter meter_;
  PieceSample sample_;
  std::vector<std::uint8_t> hit_;
};

}  // namespace slacktier
