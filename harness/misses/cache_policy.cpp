#include "harness/cache_policy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "harness/misses/simulated_policies.hpp"
#include "platforms/error.hpp"
#include "tier/directory.hpp"

namespace slacktier {
namespace {

template <class Policy>
class OneByOne final : public CachePolicy {
 public:
  explicit OneByOne(const CachePolicyOptions& options) : policy_(options) {}
  void step(std::span<const std::uint32_t> ids, std::span<std::uint8_t> hit) override {
    for (std::size_t i = 0; i < ids.size(); ++i) hit[i] = policy_.access(ids[i]);
  }

 private:
  Policy policy_;
};

// The tier's own directory, whose pages all arrive.
class InDirectory final : public CachePolicy {
 public:
  InDirectory(const std::string& policy, const CachePolicyOptions& options)
      : directory_(Directory::make(policy, options.ids, options.capacity)) {
    if (policy != "static") return;
    std::vector<std::uint32_t> rows, filled;
    const std::size_t held = std::min<std::size_t>(options.capacity, options.hottest.size());
    for (const std::uint32_t id : options.hottest.first(held))
      if (id != UINT32_MAX) rows.push_back(id);
    directory_->hold(rows, filled);
  }
  void step(std::span<const std::uint32_t> ids, std::span<std::uint8_t> hit) override {
    if (at_.size() < ids.size()) {
      at_.resize(ids.size());
      std::iota(at_.begin(), at_.end(), 0u);
      descriptors_.resize(ids.size());
    }
    misses_.clear();
    directory_->begin_step();
    directory_->resolve(ids, std::span(at_).first(ids.size()), descriptors_, misses_, reuses_);
    std::fill(hit.begin(), hit.end(), std::uint8_t{1});
    for (const Miss& miss : misses_) {
      hit[miss.lookup] = 0;
      directory_->settle(miss, true);
    }
    directory_->end_step();
  }

 private:
  std::unique_ptr<Directory> directory_;
  std::vector<std::uint32_t> at_;
  std::vector<Descriptor> descriptors_;
  std::vector<Miss> misses_;
  std::vector<Reuse> reuses_;
};

struct Simulated {
  const char* name;
  std::unique_ptr<CachePolicy> (*make)(const CachePolicyOptions&);
};
template <class Policy>
std::unique_ptr<CachePolicy> make_one_by_one(const CachePolicyOptions& options) {
  return std::make_unique<OneByOne<Policy>>(options);
}
// One line per policy.
constexpr Simulated simulated[] = {
    {"arc", make_one_by_one<ArcPolicy>},
    {"lfu", make_one_by_one<LfuPolicy>},
    {"wtinylfu", make_one_by_one<WTinyLfuPolicy>},
    {"static-lru", make_one_by_one<StaticLruPolicy>},
};

}  // namespace

std::unique_ptr<CachePolicy> make_cache_policy(const std::string& name, const CachePolicyOptions& options) {
  if (options.capacity == 0 || options.ids == 0) throw UsageError("a cache policy needs at least one row and one slot");
  for (const Simulated& entry : simulated)
    if (name == entry.name) return entry.make(options);
  for (const std::string& policy : directory_policies())
    if (name == policy) return std::make_unique<InDirectory>(policy, options);
  throw UsageError(fmt::format("unknown cache policy '{}': use one of {}", name, fmt::join(cache_policies(), ", ")));
}

std::vector<std::string> cache_policies() {
  std::vector<std::string> names = directory_policies();
  for (const Simulated& entry : simulated) names.emplace_back(entry.name);
  names.emplace_back("belady");
  return names;
}

std::vector<std::uint32_t> next_uses(std::span<const std::uint32_t> ids, std::uint32_t distinct) {
  std::vector<std::uint32_t> next(ids.size()), seen(distinct, UINT32_MAX);
  for (std::size_t i = ids.size(); i-- > 0;) {
    next[i] = seen[ids[i]];
    seen[ids[i]] = static_cast<std::uint32_t>(i);
  }
  return next;
}

BestHits::BestHits(std::span<const std::uint32_t> next, std::uint32_t capacity) : next_(next), capacity_(capacity) {
  for (std::size_t words = (next.size() + 63) / 64;; words = (words + 63) / 64) {
    levels_.emplace_back(std::max<std::size_t>(words, 1), 0);
    if (words <= 1) break;
  }
}

void BestHits::keep(std::uint32_t use) {
  for (auto& level : levels_) {
    level[use / 64] |= std::uint64_t{1} << (use % 64);
    use /= 64;
  }
  ++kept_;
}

void BestHits::drop(std::uint32_t use) {
  --kept_;
  for (auto& level : levels_) {
    if ((level[use / 64] &= ~(std::uint64_t{1} << (use % 64))) != 0) return;
    use /= 64;
  }
}

std::uint32_t BestHits::last_kept() const {
  std::size_t word = 0;
  for (std::size_t level = levels_.size(); level-- > 0;)
    word = word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(levels_[level][word]));
  return static_cast<std::uint32_t>(word);
}

void BestHits::step(std::span<std::uint8_t> hit) {
  const auto n = static_cast<std::uint32_t>(hit.size());
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t use = position_ + i;
    hit[i] = (levels_[0][use / 64] >> (use % 64)) & 1;
    if (hit[i]) drop(use);
  }
  // What is used soonest stays; a row may be passed on without being cached.
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t use = next_[position_ + i];
    if (use == UINT32_MAX) continue;
    keep(use);
    if (kept_ > capacity_) drop(last_kept());
  }
  position_ += n;
}

}  // namespace slacktier
