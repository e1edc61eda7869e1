// Replacement policies over a recorded stream of rows, for comparison: those of the tier's own directory, and further ones
// that only a simulation needs. Rows are numbered densely: ids in [0, ids), in the order of their first lookup.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace slacktier {

struct CachePolicyOptions {
  std::uint32_t ids = 0;       // different rows of the stream
  std::uint32_t capacity = 0;  // rows that the cache holds, at least 1
  // What static and static-lru hold: ids by falling frequency in the training data. Rows that the stream never asks for take
  // their place, as UINT32_MAX.
  std::span<const std::uint32_t> hottest;
};

class CachePolicy {
 public:
  virtual ~CachePolicy() = default;
  // Looks up the different ids of one step, in order; hit[i] becomes 1 or 0.
  virtual void step(std::span<const std::uint32_t> ids, std::span<std::uint8_t> hit) = 0;
};

// By name: one of the tier's directory policies (a step is looked up as a whole, its misses then enter), or
//   arc         Megiddo and Modha, FAST 2003
//   lfu         evicts the row with the fewest hits since it entered; of these the one not used longest
//   wtinylfu    Einziger, Friedman, Manes, 2017: a window of 1%, the rest in two segments, admission by counts, which are
//   kept
//               exactly here and halved every ten capacities
//   static-lru  half of the cache holds the hottest rows for good, the other half is LRU
// which look rows up one after another. Throws UsageError listing the names.
std::unique_ptr<CachePolicy> make_cache_policy(const std::string& name, const CachePolicyOptions& options);
// Those names, and "belady" (best_hits below); "lru" comes from one pass over all capacities (harness/stack_distances.hpp).
std::vector<std::string> cache_policies();

// Belady's optimum with bypass: no policy has more hits on this stream. `steps` are ends in `ids` (rising; the ids of a step
// differ). next_uses gives what the others take: for each lookup the index of the same id's next one, UINT32_MAX for none.
std::vector<std::uint32_t> next_uses(std::span<const std::uint32_t> ids, std::uint32_t distinct);
class BestHits {
 public:
  // Keeps a reference to `next`.
  BestHits(std::span<const std::uint32_t> next, std::uint32_t capacity);
  // The next step, of hit.size() lookups.
  void step(std::span<std::uint8_t> hit);

 private:
  void keep(std::uint32_t use);
  void drop(std::uint32_t use);
  std::uint32_t last_kept() const;

  std::span<const std::uint32_t> next_;
  std::vector<std::vector<std::uint64_t>>
      levels_;  // bit u of levels_[0]: lookup u will hit; above: which words are not empty
  std::uint32_t capacity_, kept_ = 0, position_ = 0;
};

}  // namespace slacktier
