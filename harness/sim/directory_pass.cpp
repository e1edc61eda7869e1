#include "harness/directory_pass.hpp"

#include <algorithm>
#include <utility>

#include "harness/hot_rows.hpp"
#include "platforms/error.hpp"
#include "tier/step.hpp"

namespace slacktier {
namespace {

// The host's page cache before a layer that has no other: pages by number, least recently used first out.
class PageCache {
 public:
  PageCache(std::uint64_t pages, std::uint64_t held) : pages_(Directory::make("lru", pages, held)) {}

  // Pages, repeated or not, pass through the cache; returns those that it held.
  std::uint32_t pass(std::span<const std::uint32_t> pages, std::vector<std::uint32_t>* missing = nullptr) {
    descriptors_.resize(std::max(descriptors_.size(), pages.size()));
    for (std::size_t i = at_.size(); i < pages.size(); ++i) at_.push_back(static_cast<std::uint32_t>(i));
    misses_.clear();
    reuses_.clear();
    misses_.reserve(pages.size());
    reuses_.reserve(pages.size());
    pages_->begin_step();
    const ResolveCounts counts = pages_->resolve(pages, std::span(at_).first(pages.size()), descriptors_, misses_, reuses_);
    for (const Miss& miss : misses_) {
      pages_->settle(miss, true);
      if (missing) missing->push_back(miss.row);
    }
    pages_->end_step();
    return counts.hits;
  }

 private:
  std::unique_ptr<Directory> pages_;
  std::vector<Descriptor> descriptors_;
  std::vector<std::uint32_t> at_;
  std::vector<Miss> misses_;
  std::vector<Reuse> reuses_;
};

std::uint32_t owned_columns(const Shard& shard) {
  std::uint32_t columns = 0;
  for (std::size_t c = 0; c < shard.first.size(); ++c) columns += shard.first[c] < shard.last[c];
  return columns;
}

}  // namespace

DirectoryPasses::DirectoryPasses(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign,
                                 std::vector<std::uint32_t> disk_counts, std::function<bool()> stop)
    : trace_(trace),
      spec_(spec),
      campaign_(campaign),
      disk_counts_(std::move(disk_counts)),
      stop_(std::move(stop)),
      hash_(make_hash(spec)) {}

DirectoryPasses::~DirectoryPasses() = default;

const PassResult& DirectoryPasses::at(const PassKey& key) {
  const auto found = results_.find(key);
  if (found != results_.end()) return found->second;
  return results_.emplace(key, run(key)).first->second;
}

std::span<const std::uint32_t> DirectoryPasses::rows_of(std::size_t layer_index, std::span<const std::uint32_t> context) {
  const std::size_t tokens = context.size() / static_cast<std::size_t>(spec_.max_ngram);
  const std::size_t lookups = tokens * spec_.rows_per_token();
  if (rows_.size() < lookups) rows_.resize(lookups);
  hash_->rows(layer_index, context.data(), tokens, rows_.data());
  return std::span(rows_).first(lookups);
}

std::span<const std::uint32_t> DirectoryPasses::active_context(const StepView& step) {
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  active_context_.clear();
  for (std::size_t t = 0; t < step.active.size(); ++t)
    if (step.active[t])
      active_context_.insert(active_context_.end(), step.context.begin() + static_cast<std::ptrdiff_t>(t * order),
                             step.context.begin() + static_cast<std::ptrdiff_t>((t + 1) * order));
  return active_context_;
}

PassResult DirectoryPasses::run(const PassKey& key) {
  const std::size_t columns = spec_.rows_per_token();
  LayerCoreOptions options;
  options.geometry = make_page_geometry(4096, spec_.row_bytes);
  options.shard = make_shard(spec_, key.layer_index, campaign_.shard_map, campaign_.ranks, key.rank);
  options.fold.stored_pages = options.geometry.pages(options.shard.rows);
  options.resident = key.resident;
  options.policy = key.policy;
  options.cache_rows = key.page_cache_pages > 0 ? 0 : key.cache_rows;
  options.max_lookups = static_cast<std::uint32_t>(std::size_t{trace_.sessions()} * trace_.q() * columns);
  options.buffers = key.resident ? 0 : trace_.sessions() * trace_.q() * owned_columns(options.shard);
  options.row_dedup = key.row_dedup;
  options.page_dedup = key.page_dedup;
  std::shared_ptr<const SeenSet> seen;
  if (!key.skip_unseen.empty() && !key.resident) {
    seen = SeenSet::load(key.skip_unseen, spec_, campaign_.shard_map, campaign_.ranks, key.rank);
    options.seen = seen->bits(key.layer_index).data();
  }
  LayerCore core(options);
  std::unique_ptr<PageCache> page_cache;
  if (key.page_cache_pages > 0) page_cache = std::make_unique<PageCache>(options.fold.stored_pages, key.page_cache_pages);

  PassResult result;
  // As the live tier holds them: the directory, and buffers for two steps.
  if (core.directory())
    result.host_bytes = core.directory()->bytes() + std::uint64_t{2} * options.buffers * options.geometry.page_bytes;
  std::vector<std::uint32_t> filled, local, pages;
  std::vector<PageFault> faults;
  const std::uint64_t measured = trace_.steps() - key.warm_steps;
  result.steps.reserve(measured);
  for (const std::uint32_t disks : disk_counts_) result.pages_on[disks].assign(measured * disks, 0);

  const auto prefill = [&](std::span<const std::uint32_t> context) {
    if (context.empty()) return;
    const std::size_t wave = std::size_t{trace_.sessions()} * trace_.q() * static_cast<std::size_t>(spec_.max_ngram);
    for (std::size_t begin = 0; begin < context.size(); begin += wave) {
      const auto rows = rows_of(key.layer_index, context.subspan(begin, std::min(wave, context.size() - begin)));
      filled.clear();
      if (!page_cache) {
        core.advance(rows, filled);
        continue;
      }
      pages.clear();
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (const std::size_t c = i % columns; rows[i] >= options.shard.first[c] && rows[i] < options.shard.last[c])
          pages.push_back(static_cast<std::uint32_t>(options.fold.page(
              (rows[i] - options.shard.first[c] + options.shard.local[c]) / options.geometry.rows_per_page)));
      page_cache->pass(pages);
    }
  };

  // Without a cache nothing that came before matters.
  const bool remembers = page_cache || (!key.resident && options.cache_rows > 0 && key.policy != "static");
  if (key.policy == "static" && !key.resident && options.cache_rows > 0) {
    std::vector<std::uint32_t> rows;
    if (key.hot_rows.empty()) {
      rows = learn_hot_rows(trace_, key.warm_steps, spec_, *hash_, key.layer_index, options.shard,
                            core.directory()->reserved());
    } else {
      const auto listed = read_hot_rows(key.hot_rows, spec_);
      const auto of_layer = listed.find(spec_.layers[key.layer_index].layer);
      if (of_layer != listed.end()) rows = owned_rows(of_layer->second, options.shard);
    }
    core.hold(rows, filled);
  }
  for (std::uint64_t s = 0; remembers && s < key.warm_steps; ++s) {
    if (s % 64 == 0 && stop_ && stop_()) throw Interrupted();
    const StepView step = trace_.step(s);
    prefill(step.prefill_context);
    prefill(active_context(step));
  }
  for (std::uint64_t s = key.warm_steps; s < trace_.steps(); ++s) {
    if (s % 64 == 0 && stop_ && stop_()) throw Interrupted();
    const StepView step = trace_.step(s);
    if (remembers) prefill(step.prefill_context);
    core.on_indices(s + 1, rows_of(key.layer_index, step.context), step.active);
    pages.clear();
    for (const PageRead& read : core.reads()) pages.push_back(static_cast<std::uint32_t>(read.page));
    faults.assign(pages.size(), PageFault::none);
    if (core.in_flight()) core.on_pages(s + 1, faults);
    core.settle();
    const LayerCounts& counts = core.counts();
    StepOutcome outcome{counts.owned, counts.skipped, counts.hits, counts.reused, counts.misses, counts.pages, 0};
    if (page_cache) {
      local.clear();
      outcome.cached_pages = page_cache->pass(pages, &local);
      outcome.pages = static_cast<std::uint32_t>(local.size());
      pages.swap(local);
    }
    const std::size_t at = result.steps.size();
    result.steps.push_back(outcome);
    for (auto& [disks, on] : result.pages_on)
      for (const std::uint32_t page : pages) ++on[at * disks + page % disks];
  }
  return result;
}

}  // namespace slacktier
