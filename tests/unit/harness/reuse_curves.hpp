// Hit rates of an LRU cache of n-grams under interleaved sessions, for all capacities in one pass; apart from the harness's
// own interleaving and cache simulation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "harness/sessions.hpp"

namespace slacktier {

// Capacities in rows of one n-gram order of one layer: eight heads hash an n-gram to eight rows, so that a cache of
// `rows` rows holds rows / 8 n-grams.
inline constexpr std::array<std::uint32_t, 5> kCapacityRows = {20'000, 100'000, 300'000, 1'000'000, 3'000'000};
inline constexpr int kOrders = 3;  // 2-, 3- and 4-grams

struct ReuseCurves {
  std::uint64_t steps = 0, decode_tokens = 0, prefill_tokens = 0;
  double decode_hit[kOrders][kCapacityRows.size()] = {};  // percent of the decode lookups
  double seen_before[kOrders] = {};                       // likewise, at infinite capacity
  double distinct_in_step[kOrders] = {};                  // percent of a step's decode lookups, mean over steps
};

namespace reuse {

inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Mattson's stack distance: how many different keys were looked up since a key's last lookup, itself included. An LRU cache
// of c keys hits exactly when that is at most c. A Fenwick tree over time holds a 1 at each key's last lookup.
class StackDistance {
 public:
  explicit StackDistance(std::size_t lookups) : tree_(lookups + 1), keys_(1024), last_(1024) {}

  // 0 for a key never seen.
  std::uint64_t lookup(std::uint64_t key) {
    if (2 * distinct_ >= keys_.size()) grow();
    const std::size_t at = find(keys_, key);
    ++now_;
    std::uint64_t distance = 0;
    if (keys_[at] == key) {
      std::uint64_t until = 0;
      for (std::size_t i = last_[at]; i > 0; i &= i - 1) until += tree_[i];
      distance = distinct_ - until + 1;
      for (std::size_t i = last_[at]; i < tree_.size(); i += i & (~i + 1)) --tree_[i];
    } else {
      keys_[at] = key;
      ++distinct_;
    }
    last_[at] = now_;
    for (std::size_t i = now_; i < tree_.size(); i += i & (~i + 1)) ++tree_[i];
    return distance;
  }

 private:
  static std::size_t find(const std::vector<std::uint64_t>& keys, std::uint64_t key) {
    std::size_t at = mix(key) & (keys.size() - 1);
    while (keys[at] != 0 && keys[at] != key) at = (at + 1) & (keys.size() - 1);
    return at;
  }
  void grow() {
    std::vector<std::uint64_t> keys(keys_.size() * 2);
    std::vector<std::uint32_t> last(keys.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      if (keys_[i] == 0) continue;
      const std::size_t at = find(keys, keys_[i]);
      keys[at] = keys_[i];
      last[at] = last_[i];
    }
    keys_.swap(keys);
    last_.swap(last);
  }

  std::vector<std::uint32_t> tree_;
  std::vector<std::uint64_t> keys_;  // 0: empty
  std::vector<std::uint32_t> last_;
  std::uint32_t now_ = 0;
  std::uint64_t distinct_ = 0;
};

}  // namespace reuse

// B sessions decode one token each a step. A session's turns up to its next assistant turn are prefilled before that turn's
// first token; a session that ended is replaced by the next. Ends after `most_steps`, when a slot finds no further session,
// or after `most_lookups` tokens. `map` gives canonical ids (empty: ids as they are).
inline ReuseCurves reuse_curves(SessionSource& source, const std::vector<std::uint32_t>& map, std::size_t sessions,
                                std::uint64_t most_steps, std::size_t most_lookups = std::size_t{1} << 23) {
  struct Slot {
    Session session;
    std::size_t turn = 0, position = 0;
    std::uint64_t context[3] = {2, 2, 2};  // previous ids, the last one first; 2 is the pad
  };
  ReuseCurves curves;
  std::vector<Slot> slots(sessions);
  std::vector<reuse::StackDistance> caches(kOrders, reuse::StackDistance(most_lookups));
  std::uint64_t hits[kOrders][kCapacityRows.size()] = {}, seen[kOrders] = {};
  std::unordered_set<std::uint64_t> in_step[kOrders];
  double distinct[kOrders] = {};

  auto lookup = [&](Slot& slot, std::uint32_t raw, bool decode) {
    const std::uint64_t id = map.empty() ? raw : map[raw];
    std::uint64_t key = id + 1;
    for (int n = 0; n < kOrders; ++n) {
      key = reuse::mix(key * 0x9E3779B97F4A7C15u + slot.context[n] + 1) | 1;
      const std::uint64_t distance = caches[static_cast<std::size_t>(n)].lookup(key);
      if (!decode) continue;
      in_step[n].insert(key);
      if (distance == 0) continue;
      ++seen[n];
      for (std::size_t c = 0; c < kCapacityRows.size(); ++c) hits[n][c] += distance <= kCapacityRows[c] / 8;
    }
    slot.context[2] = slot.context[1];
    slot.context[1] = slot.context[0];
    slot.context[0] = id;
    ++(decode ? curves.decode_tokens : curves.prefill_tokens);
  };
  // Prefills up to the slot's next token to decode; false when there is none.
  auto advance = [&](Slot& slot) {
    for (;;) {
      const auto& turns = slot.session.turns;
      for (; slot.turn < turns.size(); ++slot.turn, slot.position = 0) {
        const Turn& turn = turns[slot.turn];
        if (turn.role != Role::assistant) {
          for (const std::uint32_t id : turn.ids) lookup(slot, id, false);
        } else if (slot.position < turn.ids.size()) {
          return true;
        }
      }
      slot.turn = slot.position = 0;
      for (std::uint64_t& id : slot.context) id = 2;
      if (!source.next(slot.session)) return false;
    }
  };

  for (bool more = true; more && curves.steps < most_steps;) {
    for (Slot& slot : slots) {
      if (!(more = advance(slot))) break;
    }
    if (!more || curves.decode_tokens + curves.prefill_tokens + sessions > most_lookups) break;
    for (Slot& slot : slots) lookup(slot, slot.session.turns[slot.turn].ids[slot.position++], true);
    for (int n = 0; n < kOrders; ++n) {
      distinct[n] += static_cast<double>(in_step[n].size());
      in_step[n].clear();
    }
    ++curves.steps;
  }
  const double lookups = static_cast<double>(curves.decode_tokens);
  for (int n = 0; n < kOrders && lookups > 0; ++n) {
    for (std::size_t c = 0; c < kCapacityRows.size(); ++c)
      curves.decode_hit[n][c] = 100 * static_cast<double>(hits[n][c]) / lookups;
    curves.seen_before[n] = 100 * static_cast<double>(seen[n]) / lookups;
    curves.distinct_in_step[n] = 100 * distinct[n] / lookups;
  }
  return curves;
}

}  // namespace slacktier
