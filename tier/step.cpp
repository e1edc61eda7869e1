#include "tier/step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t no_read = UINT32_MAX;

}  // namespace

LayerCore::LayerCore(LayerCoreOptions options) : options_(std::move(options)) {
  const std::size_t n = options_.max_lookups;
  if (!options_.descriptors) own_descriptors_.resize(n);
  descriptors_ = {options_.descriptors ? options_.descriptors : own_descriptors_.data(), n};
  local_.resize(n + 1);  // the selection writes one entry ahead
  at_.resize(n + 1);
  if (options_.seen) skipped_at_.resize(n + 1);
  const std::size_t columns = options_.shard.first.size();
  counts_.owned_by_column.resize(columns);
  counts_.hits_by_column.resize(columns);
  counts_.reused_by_column.resize(columns);
  for (std::size_t c = 0; c < columns; ++c)
    if (const std::uint32_t first = options_.shard.first[c], last = options_.shard.last[c]; first < last)
      owned_columns_.push_back({static_cast<std::uint32_t>(c), first, last - first, options_.shard.local[c]});
  if (options_.resident) return;

  directory_ = Directory::make(options_.policy, options_.shard.rows, options_.cache_rows, options_.cache_rows_reserved);
  const std::size_t owned = n / std::max<std::size_t>(columns, 1) * owned_columns_.size();
  if (options_.buffers < owned)
    throw UsageError(
        fmt::format("page pool: {} buffers for a layer whose steps may read {} pages", options_.buffers, owned));
  misses_.reserve(owned);
  reuses_.reserve(owned);
  reads_.reserve(owned);
  miss_read_.reserve(owned);
  miss_bad_.reserve(owned);
  free_buffers_.reserve(options_.buffers);
  // The stack's top is the lowest buffer, so that a step's pages lie together.
  for (std::uint32_t b = options_.buffers; b-- > 0;) free_buffers_.push_back(options_.first_buffer + b);
  page_map_.resize(std::bit_ceil(2 * std::max<std::size_t>(owned, 1)));
}

// Owned lookups of active tokens, in order, as local rows. Columns that this rank has no part of are not looked at: their
// descriptors are zero from the start and are never written.
void LayerCore::select_owned(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active) {
  const std::size_t columns = options_.shard.first.size();
  const std::size_t tokens = rows.size() / columns;
  lookups_ = rows.size();
  std::size_t kept = 0, live = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::uint32_t* row = &rows[t * columns];
    Descriptor* descriptor = &descriptors_[t * columns];
    const bool masked = !active.empty() && !active[t];
    // A token's columns lie one row of columns from the next token's: too far for the CPU to see the pattern across pages.
    if (!owned_columns_.empty() && t + 8 < tokens) {
      __builtin_prefetch(row + 8 * columns + owned_columns_.front().column);
      __builtin_prefetch(descriptor + 8 * columns + owned_columns_.front().column, 1);
      __builtin_prefetch(descriptor + 8 * columns + owned_columns_.back().column, 1);
    }
    live += !masked;
    for (const OwnedColumn& c : owned_columns_) {
      const std::uint32_t offset = row[c.column] - c.first;
      local_[kept] = offset + c.local;
      at_[kept] = static_cast<std::uint32_t>(t * columns + c.column);
      descriptor[c.column] = Descriptor::zero();
      kept += !masked && offset < c.rows;
    }
  }
  owned_ = kept;
  counts_.lookups = static_cast<std::uint32_t>(live * columns);
  counts_.owned = static_cast<std::uint32_t>(kept);
  if (!options_.seen) return;
  owned_ = skip_unseen(std::span(local_).first(kept), std::span(at_).first(kept), skipped_at_.data());
  counts_.skipped = static_cast<std::uint32_t>(kept - owned_);
}

// Moves the lookups of rows that were seen to the front, in order, and returns how many they are. The positions of the
// others go to `skipped`, which has room for all and one more.
std::size_t LayerCore::skip_unseen(std::span<std::uint32_t> rows, std::span<std::uint32_t> at,
                                   std::uint32_t* skipped) const {
  constexpr std::size_t ahead = 32;
  for (std::size_t i = 0; i < std::min(ahead, rows.size()); ++i) __builtin_prefetch(&options_.seen[rows[i] / 64]);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + ahead < rows.size()) __builtin_prefetch(&options_.seen[rows[i + ahead] / 64]);
    const std::uint32_t row = rows[i], position = at[i];
    const auto seen = static_cast<std::size_t>(options_.seen[row / 64] >> (row % 64) & 1);
    skipped[i - kept] = position;
    rows[kept] = row;
    at[kept] = position;
    kept += seen;
  }
  return kept;
}

// Fibonacci hashing: rows of one head are close together, so low bits alone would cluster.
std::size_t LayerCore::page_slot(std::uint32_t page) const {
  return static_cast<std::size_t>((page * 0x9E3779B97F4A7C15u) >> 32) & (page_map_.size() - 1);
}

std::uint32_t LayerCore::buffer_for(std::uint32_t page) {
  const std::size_t mask = page_map_.size() - 1;
  std::size_t i = page_slot(page);
  while (page_map_[i].tag == page_tag_) {
    if (page_map_[i].page == page && options_.page_dedup) return page_map_[i].read;
    i = (i + 1) & mask;
  }
  if (free_buffers_.empty()) return no_read;
  page_map_[i] = {page_tag_, page, static_cast<std::uint32_t>(reads_.size())};
  reads_.push_back({page, free_buffers_.back(), 0});
  free_buffers_.pop_back();
  return page_map_[i].read;
}

void LayerCore::on_indices(std::uint64_t epoch, std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active) {
  epoch_ = epoch;
  counts_.hits = counts_.reused = counts_.misses = counts_.evictions = counts_.pages = counts_.unfilled = counts_.failed = 0;
  select_owned(rows, active);
  misses_.clear();
  reuses_.clear();
  reads_.clear();
  miss_read_.clear();
  if (options_.resident) {
    const PageGeometry& g = options_.geometry;
    for (std::size_t i = 0; i < owned_; ++i)
      descriptors_[at_[i]] = Descriptor::resident(static_cast<std::uint32_t>(options_.fold.row(local_[i], g)));
    state_ = State::arrived;
    return;
  }

  directory_->begin_step();
  const ResolveCounts resolved =
      directory_->resolve(owned_rows(), owned_at(), descriptors_, misses_, reuses_, options_.row_dedup);
  counts_.hits = resolved.hits;
  counts_.reused = resolved.reused;
  counts_.misses = resolved.misses;
  counts_.evictions = resolved.evictions;

  ++page_tag_;
  const std::uint32_t per_page = options_.geometry.rows_per_page;
  // Two passes: the map's lines are on their way before the first of them is needed.
  for (const Miss& miss : misses_) {
    const auto page = static_cast<std::uint32_t>(options_.fold.page(miss.row / per_page));
    miss_read_.push_back(page);
    __builtin_prefetch(&page_map_[page_slot(page)], 1);
  }
  for (std::size_t m = 0; m < misses_.size(); ++m) {
    const Miss& miss = misses_[m];
    const std::uint32_t read = buffer_for(miss_read_[m]);
    miss_read_[m] = read;
    if (miss.slot == no_slot) ++counts_.unfilled;
    if (read == no_read) {
      ++counts_.failed;  // delivered as zero
      continue;
    }
    reads_[read].records |= record_bit(miss.row % per_page);
    descriptors_[miss.lookup] = Descriptor::miss(reads_[read].buffer, miss.row % per_page, miss.slot);
  }
  for (const Reuse& reuse : reuses_) {
    const Descriptor first = descriptors_[misses_[reuse.miss].lookup];
    if (first.kind() == LookupKind::miss)
      descriptors_[reuse.lookup] = Descriptor::miss(first.buffer(), first.record(), no_slot);
    else
      ++counts_.failed;
  }
  counts_.pages = static_cast<std::uint32_t>(reads_.size());
  miss_bad_.assign(misses_.size(), 0);
  for (std::size_t m = 0; m < misses_.size(); ++m) miss_bad_[m] = miss_read_[m] == no_read;
  state_ = reads_.empty() ? State::arrived : State::reading;
}

// Lookups of bad misses become zeros.
void LayerCore::drop_lookups() {
  for (std::size_t m = 0; m < misses_.size(); ++m)
    if (miss_bad_[m] && descriptors_[misses_[m].lookup].kind() == LookupKind::miss) {
      descriptors_[misses_[m].lookup] = Descriptor::zero();
      ++counts_.failed;
    }
  for (const Reuse& reuse : reuses_)
    if (miss_bad_[reuse.miss] && descriptors_[reuse.lookup].kind() == LookupKind::miss) {
      descriptors_[reuse.lookup] = Descriptor::zero();
      ++counts_.failed;
    }
}

LayerCore::Release LayerCore::on_pages(std::uint64_t epoch, std::span<const PageFault> faults) {
  if (epoch != epoch_ || state_ != State::reading) {
    const auto held = std::find_if(quarantine_.begin(), quarantine_.end(), [&](const auto& q) { return q.epoch == epoch; });
    if (held != quarantine_.end()) {
      for (const PageRead& read : held->reads) free_buffers_.push_back(read.buffer);
      quarantine_.erase(held);
    }
    return {};
  }
  state_ = State::arrived;
  StepStatus status = counts_.failed > 0 ? StepStatus::no_buffers : StepStatus::ok;
  if (std::any_of(faults.begin(), faults.end(), [](PageFault f) { return f != PageFault::none; })) {
    for (std::size_t m = 0; m < misses_.size(); ++m)
      if (miss_read_[m] != no_read && faults[miss_read_[m]] != PageFault::none) miss_bad_[m] = 1;
    drop_lookups();
    status = StepStatus::read_error;
  }
  return {true, status};
}

bool LayerCore::abandon(std::uint64_t epoch) {
  if (epoch != epoch_ || state_ != State::reading) return false;
  std::fill(miss_bad_.begin(), miss_bad_.end(), std::uint8_t{1});
  drop_lookups();
  quarantine_.push_back({epoch, std::move(reads_)});
  reads_ = {};
  reads_.reserve(misses_.capacity());
  state_ = State::abandoned;
  return true;
}

void LayerCore::settle() {
  if (state_ == State::idle || state_ == State::reading) return;
  count_by_column();
  if (directory_) {
    for (std::size_t m = 0; m < misses_.size(); ++m) directory_->settle(misses_[m], !miss_bad_[m]);
    directory_->end_step();
    if (state_ == State::arrived)
      for (std::size_t r = reads_.size(); r-- > 0;) free_buffers_.push_back(reads_[r].buffer);
  }
  state_ = State::idle;
}

void LayerCore::resize_cache(std::uint64_t rows) {
  if (!directory_) throw UsageError("cache: a layer that lies in host memory has none");
  directory_->resize(rows);
  options_.cache_rows = rows;
}

void LayerCore::set_dedup(bool rows, bool pages) {
  options_.row_dedup = rows;
  options_.page_dedup = pages;
}

void LayerCore::hold(std::span<const std::uint32_t> local_rows, std::vector<std::uint32_t>& filled) {
  if (directory_) directory_->hold(local_rows, filled);
}

void LayerCore::count_by_column() {
  const std::size_t columns = counts_.owned_by_column.size();
  for (auto* by_column : {&counts_.owned_by_column, &counts_.hits_by_column, &counts_.reused_by_column})
    std::fill(by_column->begin(), by_column->end(), 0u);
  for (const std::uint32_t at : owned_at()) {
    ++counts_.owned_by_column[at % columns];
    counts_.hits_by_column[at % columns] += descriptors_[at].kind() == LookupKind::hit;
  }
  for (std::size_t i = 0; i < counts_.skipped; ++i) ++counts_.owned_by_column[skipped_at_[i] % columns];
  for (const Reuse& reuse : reuses_) ++counts_.reused_by_column[reuse.lookup % columns];
}

void LayerCore::advance(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled) {
  if (options_.resident) return;
  const std::size_t columns = options_.shard.first.size();
  const std::size_t wave = options_.max_lookups / columns * columns;
  for (std::size_t begin = 0; begin < rows.size(); begin += wave) {
    select_owned(rows.subspan(begin, std::min(wave, rows.size() - begin)), {});
    misses_.clear();
    reuses_.clear();
    directory_->begin_step();
    directory_->resolve(owned_rows(), owned_at(), descriptors_, misses_, reuses_);
    for (const Miss& miss : misses_) {
      directory_->settle(miss, true);
      if (miss.slot != no_slot) filled.push_back(miss.slot);
    }
    directory_->end_step();
  }
}

}  // namespace slacktier
