// The policies that only the simulation has: each answers one lookup after another. Private to harness.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "harness/cache_policy.hpp"
#include "harness/misses/id_lists.hpp"

namespace slacktier {

// Adaptive replacement cache, the names of its authors: T1, T2 are cached, B1, B2 remembered, p is T1's target size.
class ArcPolicy {
 public:
  explicit ArcPolicy(const CachePolicyOptions& o) : c_(o.capacity), lists_(o.ids, 4) {}
  bool access(std::uint32_t id) {
    const std::uint8_t at = lists_.list_of(id);
    if (at == t1 || at == t2) {
      lists_.move_front(t2, id);
      return true;
    }
    if (at == b1) {
      p_ = std::min(c_, p_ + std::max(1u, lists_.size(b2) / lists_.size(b1)));
      replace(false);
      lists_.move_front(t2, id);
    } else if (at == b2) {
      const std::uint32_t down = std::max(1u, lists_.size(b1) / lists_.size(b2));
      p_ = p_ > down ? p_ - down : 0;
      replace(true);
      lists_.move_front(t2, id);
    } else {
      const std::uint32_t l1 = lists_.size(t1) + lists_.size(b1), all = l1 + lists_.size(t2) + lists_.size(b2);
      if (l1 == c_) {
        if (lists_.size(t1) < c_) {
          lists_.pop_back(b1);
          replace(false);
        } else {
          lists_.pop_back(t1);
        }
      } else if (all >= c_) {
        if (all == 2 * c_) lists_.pop_back(b2);
        replace(false);
      }
      lists_.push_front(t1, id);
    }
    return false;
  }

 private:
  static constexpr std::uint8_t t1 = 0, t2 = 1, b1 = 2, b2 = 3;
  void replace(bool in_b2) {
    if (lists_.size(t1) + lists_.size(t2) < c_) return;
    if (lists_.size(t1) > 0 && (lists_.size(t1) > p_ || (in_b2 && lists_.size(t1) == p_) || lists_.size(t2) == 0))
      lists_.push_front(b1, lists_.pop_back(t1));
    else
      lists_.push_front(b2, lists_.pop_back(t2));
  }
  std::uint32_t c_, p_ = 0;
  IdLists lists_;
};

// Rows in lists by their number of hits, from 250 on in one.
class LfuPolicy {
 public:
  explicit LfuPolicy(const CachePolicyOptions& o) : c_(o.capacity), lists_(o.ids, most + 1) {}
  bool access(std::uint32_t id) {
    const std::uint8_t hits = lists_.list_of(id);
    if (hits != IdLists::none) {
      lists_.move_front(std::min<std::uint8_t>(most, static_cast<std::uint8_t>(hits + 1)), id);
      return true;
    }
    if (held_ == c_) {
      std::uint8_t fewest = 0;
      while (lists_.size(fewest) == 0) ++fewest;
      lists_.pop_back(fewest);
    } else {
      ++held_;
    }
    lists_.push_front(0, id);
    return false;
  }

 private:
  static constexpr std::uint8_t most = 250;
  std::uint32_t c_, held_ = 0;
  IdLists lists_;
};

class WTinyLfuPolicy {
 public:
  explicit WTinyLfuPolicy(const CachePolicyOptions& o)
      : window_(std::max(1u, o.capacity / 100)),
        main_(o.capacity - std::min(o.capacity, window_)),
        protected_(main_ / 5 * 4),
        period_(10 * std::uint64_t{o.capacity}),
        lists_(o.ids, 3),
        counts_(o.ids, 0) {}
  bool access(std::uint32_t id) {
    counts_[id] = std::min<std::uint8_t>(15, static_cast<std::uint8_t>(counts_[id] + 1));
    if (++since_halving_ == period_) {
      for (std::uint8_t& count : counts_) count = static_cast<std::uint8_t>(count / 2);
      since_halving_ = 0;
    }
    const std::uint8_t at = lists_.list_of(id);
    if (at == window) {
      lists_.move_front(window, id);
    } else if (at != IdLists::none) {
      lists_.move_front(guarded, id);
      if (lists_.size(guarded) > protected_) lists_.push_front(probation, lists_.pop_back(guarded));
    } else {
      lists_.push_front(window, id);
      if (lists_.size(window) > window_) admit(lists_.pop_back(window));
    }
    return at != IdLists::none;
  }

 private:
  static constexpr std::uint8_t window = 0, probation = 1, guarded = 2;
  void admit(std::uint32_t candidate) {
    if (lists_.size(probation) + lists_.size(guarded) < main_) return lists_.push_front(probation, candidate);
    if (main_ == 0) return;
    const std::uint8_t from = lists_.size(probation) > 0 ? probation : guarded;
    if (counts_[candidate] <= counts_[lists_.back(from)]) return;
    lists_.pop_back(from);
    lists_.push_front(probation, candidate);
  }
  std::uint32_t window_, main_, protected_;
  std::uint64_t period_, since_halving_ = 0;
  IdLists lists_;
  std::vector<std::uint8_t> counts_;
};

class StaticLruPolicy {
 public:
  explicit StaticLruPolicy(const CachePolicyOptions& o) : lists_(o.ids, 1), held_(o.ids, 0) {
    const std::size_t head = std::min<std::size_t>(o.capacity / 2, o.hottest.size());
    for (const std::uint32_t id : o.hottest.first(head))
      if (id != UINT32_MAX) held_[id] = 1;
    rest_ = o.capacity - static_cast<std::uint32_t>(head);
  }
  bool access(std::uint32_t id) {
    if (held_[id]) return true;
    if (lists_.list_of(id) == 0) {
      lists_.move_front(0, id);
      return true;
    }
    if (lists_.size(0) == rest_) lists_.pop_back(0);
    lists_.push_front(0, id);
    return false;
  }

 private:
  std::uint32_t rest_ = 0;
  IdLists lists_;
  std::vector<std::uint8_t> held_;
};

}  // namespace slacktier
