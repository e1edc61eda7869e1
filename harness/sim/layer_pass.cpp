#include "harness/sim/layer_pass.hpp"

#include <algorithm>
#include <utility>

#include "harness/hot_rows.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

std::uint32_t owned_columns(const Shard& shard) {
  std::uint32_t columns = 0;
  for (std::size_t c = 0; c < shard.first.size(); ++c) columns += shard.first[c] < shard.last[c];
  return columns;
}

LayerCoreOptions core_options(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign, const PassKey& key,
                              std::uint64_t reserved_rows) {
  LayerCoreOptions options;
  options.geometry = make_page_geometry(4096, spec.row_bytes);
  options.shard = make_shard(spec, key.layer_index, campaign.shard_map, campaign.ranks, key.rank);
  options.fold.stored_pages = options.geometry.pages(options.shard.rows);
  options.resident = key.resident;
  options.policy = key.policy;
  options.cache_rows = key.page_cache_pages > 0 ? 0 : key.cache_rows;
  options.cache_rows_reserved = reserved_rows;
  options.max_lookups = static_cast<std::uint32_t>(std::size_t{trace.sessions()} * trace.q() * spec.rows_per_token());
  options.buffers = key.resident ? 0 : trace.sessions() * trace.q() * owned_columns(options.shard);
  options.row_dedup = key.row_dedup;
  options.page_dedup = key.page_dedup;
  return options;
}

}  // namespace

// The host's page cache before a layer that has no other: pages by number, least recently used first out.
class LayerPass::PageCache {
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

LayerPass::LayerPass(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign, const PassKey& key,
                     std::uint64_t reserved_rows, std::function<bool()> stop)
    : trace_(trace),
      spec_(spec),
      key_(key),
      stop_(std::move(stop)),
      hash_(make_hash(spec)),
      options_(core_options(trace, spec, campaign, key, reserved_rows)) {
  if (!key.skip_unseen.empty() && !key.resident) {
    seen_ = SeenSet::load(key.skip_unseen, spec, campaign.shard_map, campaign.ranks, key.rank);
    options_.seen = seen_->bits(key.layer_index).data();
  }
  core_ = std::make_unique<LayerCore>(options_);
  if (key.page_cache_pages > 0) page_cache_ = std::make_unique<PageCache>(options_.fold.stored_pages, key.page_cache_pages);
  const bool cached = !key.resident && (options_.cache_rows > 0 || reserved_rows > 0);
  remembers_ = page_cache_ || (cached && key.policy != "static");
  if (cached && key.policy == "static") hold_hot_rows();
}

LayerPass::~LayerPass() = default;

void LayerPass::hold_hot_rows() {
  std::vector<std::uint32_t> rows;
  if (key_.hot_rows.empty()) {
    rows = learn_hot_rows(trace_, key_.warm_steps, spec_, *hash_, key_.layer_index, options_.shard,
                          core_->directory()->reserved());
  } else {
    const auto listed = read_hot_rows(key_.hot_rows, spec_);
    const auto of_layer = listed.find(spec_.layers[key_.layer_index].layer);
    if (of_layer != listed.end()) rows = owned_rows(of_layer->second, options_.shard);
  }
  core_->hold(rows, filled_);
}

std::span<const std::uint32_t> LayerPass::rows_of(std::span<const std::uint32_t> context) {
  const std::size_t tokens = context.size() / static_cast<std::size_t>(spec_.max_ngram);
  const std::size_t lookups = tokens * spec_.rows_per_token();
  if (rows_.size() < lookups) rows_.resize(lookups);
  hash_->rows(key_.layer_index, context.data(), tokens, rows_.data());
  return std::span(rows_).first(lookups);
}

std::span<const std::uint32_t> LayerPass::active_context(const StepView& step) {
  const auto order = static_cast<std::size_t>(spec_.max_ngram);
  active_context_.clear();
  for (std::size_t t = 0; t < step.active.size(); ++t)
    if (step.active[t])
      active_context_.insert(active_context_.end(), step.context.begin() + static_cast<std::ptrdiff_t>(t * order),
                             step.context.begin() + static_cast<std::ptrdiff_t>((t + 1) * order));
  return active_context_;
}

// Tokens that pass the directory (or the page cache) without a read.
void LayerPass::advance(std::span<const std::uint32_t> context) {
  if (context.empty()) return;
  const std::size_t columns = spec_.rows_per_token();
  const std::size_t wave = std::size_t{trace_.sessions()} * trace_.q() * static_cast<std::size_t>(spec_.max_ngram);
  for (std::size_t begin = 0; begin < context.size(); begin += wave) {
    const auto rows = rows_of(context.subspan(begin, std::min(wave, context.size() - begin)));
    filled_.clear();
    if (!page_cache_) {
      core_->advance(rows, filled_);
      continue;
    }
    pages_.clear();
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const std::size_t c = i % columns; rows[i] >= options_.shard.first[c] && rows[i] < options_.shard.last[c])
        pages_.push_back(static_cast<std::uint32_t>(options_.fold.page(
            (rows[i] - options_.shard.first[c] + options_.shard.local[c]) / options_.geometry.rows_per_page)));
    page_cache_->pass(pages_);
  }
}

void LayerPass::warm() {
  for (std::uint64_t s = 0; remembers_ && s < key_.warm_steps; ++s) {
    if (s % 64 == 0 && stop_ && stop_()) throw Interrupted();
    const StepView step = trace_.step(s);
    advance(step.prefill_context);
    advance(active_context(step));
  }
}

StepOutcome LayerPass::step(std::uint64_t s) {
  if (s % 64 == 0 && stop_ && stop_()) throw Interrupted();
  const StepView step = trace_.step(s);
  if (remembers_) advance(step.prefill_context);
  core_->on_indices(s + 1, rows_of(step.context), step.active);
  pages_.clear();
  for (const PageRead& read : core_->reads()) pages_.push_back(static_cast<std::uint32_t>(read.page));
  faults_.assign(pages_.size(), PageFault::none);
  if (core_->in_flight()) core_->on_pages(s + 1, faults_);
  core_->settle();
  const LayerCounts& counts = core_->counts();
  StepOutcome outcome{counts.owned, counts.skipped, counts.hits, counts.reused, counts.misses, counts.pages, 0};
  if (page_cache_) {
    local_.clear();
    outcome.cached_pages = page_cache_->pass(pages_, &local_);
    outcome.pages = static_cast<std::uint32_t>(local_.size());
    pages_.swap(local_);
  }
  return outcome;
}

std::uint64_t LayerPass::host_bytes() const {
  if (!core_->directory()) return 0;
  return core_->directory()->bytes() + std::uint64_t{2} * options_.buffers * options_.geometry.page_bytes;
}

}  // namespace slacktier
