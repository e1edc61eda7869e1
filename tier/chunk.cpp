#include "tier/chunk.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace slacktier {

ChunkPlan::ChunkPlan(std::uint32_t max_lookups, Descriptor* descriptors, std::uint32_t* at)
    : descriptors_(descriptors), at_(at) {
  by_lookup_.reserve(max_lookups);
}

void LayerCore::plan_chunk(ChunkPlan& plan, std::span<const std::uint32_t> rows) {
  const std::size_t columns = options_.shard.first.size();
  LayerCounts& counts = plan.counts_;
  counts = LayerCounts{};
  counts.lookups = static_cast<std::uint32_t>(rows.size());
  plan.by_lookup_.assign(rows.size(), Descriptor::zero());
  plan.owned_rows_.clear();
  plan.owned_at_.clear();
  for (std::size_t t = 0; t < rows.size(); t += columns)
    for (const OwnedColumn& c : owned_columns_) {
      const std::uint32_t offset = rows[t + c.column] - c.first;
      if (offset >= c.rows) continue;
      plan.owned_rows_.push_back(offset + c.local);
      plan.owned_at_.push_back(static_cast<std::uint32_t>(t + c.column));
    }
  counts.owned = static_cast<std::uint32_t>(plan.owned_rows_.size());
  if (options_.seen) {
    plan.skipped_at_.resize(plan.owned_rows_.size() + 1);
    const std::size_t kept = skip_unseen(plan.owned_rows_, plan.owned_at_, plan.skipped_at_.data());
    counts.skipped = static_cast<std::uint32_t>(plan.owned_rows_.size() - kept);
    plan.owned_rows_.resize(kept);
    plan.owned_at_.resize(kept);
  }
  plan.misses_.clear();
  plan.reuses_.clear();
  plan.reads_.clear();
  plan.waves_.clear();
  plan.wanted_.clear();
  if (options_.resident) {
    for (std::size_t i = 0; i < plan.owned_rows_.size(); ++i)
      plan.by_lookup_[plan.owned_at_[i]] =
          Descriptor::resident(static_cast<std::uint32_t>(options_.fold.row(plan.owned_rows_[i], options_.geometry)));
  } else {
    directory_->begin_step();
    const ResolveCounts resolved = directory_->resolve(plan.owned_rows_, plan.owned_at_, plan.by_lookup_, plan.misses_,
                                                       plan.reuses_, options_.row_dedup);
    counts.hits = resolved.hits;
    counts.reused = resolved.reused;
    counts.misses = resolved.misses;
    counts.evictions = resolved.evictions;
  }

  // Misses by page; each page, or each miss without page dedup, is one read. Half of the free buffers make a wave, so that
  // one is read while the other is gathered.
  const std::uint32_t per_page = options_.geometry.rows_per_page;
  for (std::size_t m = 0; m < plan.misses_.size(); ++m) {
    if (plan.misses_[m].slot == no_slot) ++counts.unfilled;
    plan.wanted_.push_back(
        {static_cast<std::uint32_t>(options_.fold.page(plan.misses_[m].row / per_page)), static_cast<std::uint32_t>(m)});
  }
  std::sort(plan.wanted_.begin(), plan.wanted_.end(),
            [](const auto& a, const auto& b) { return a.page != b.page ? a.page < b.page : a.miss < b.miss; });
  plan.bad_.assign(plan.misses_.size(), 0);
  plan.wanted_read_.resize(plan.wanted_.size());
  plan.starved_ = free_buffers_.size() < 2;
  const std::uint32_t half = plan.starved_ ? UINT32_MAX : static_cast<std::uint32_t>(free_buffers_.size() / 2);
  for (std::size_t i = 0; i < plan.wanted_.size(); ++i) {
    const bool same = i > 0 && plan.wanted_[i].page == plan.wanted_[i - 1].page && options_.page_dedup;
    if (!same) {
      // A wave ends with its last page, never between two lookups of one.
      if (plan.waves_.empty() || plan.waves_.back().reads == half)
        plan.waves_.push_back({static_cast<std::uint32_t>(plan.reads_.size()), 0, static_cast<std::uint32_t>(i), 0, {}});
      ChunkPlan::Wave& wave = plan.waves_.back();
      const std::size_t buffer = (plan.waves_.size() - 1) % 2 * half + wave.reads;
      plan.reads_.push_back({plan.wanted_[i].page, plan.starved_ ? options_.first_buffer : free_buffers_[buffer], 0});
      ++wave.reads;
    }
    ++plan.waves_.back().misses;
    plan.wanted_read_[i] = static_cast<std::uint32_t>(plan.reads_.size() - 1);
    const Miss& miss = plan.misses_[plan.wanted_[i].miss];
    plan.reads_.back().records |= record_bit(miss.row % per_page);
    plan.by_lookup_[miss.lookup] = Descriptor::miss(plan.reads_.back().buffer, miss.row % per_page, miss.slot);
  }
  counts.pages = static_cast<std::uint32_t>(plan.reads_.size());

  // Reuses behind their miss.
  std::sort(plan.reuses_.begin(), plan.reuses_.end(),
            [](const Reuse& a, const Reuse& b) { return a.miss != b.miss ? a.miss < b.miss : a.lookup < b.lookup; });
  plan.first_reuse_.assign(plan.misses_.size() + 1, 0);
  for (const Reuse& reuse : plan.reuses_) {
    ++plan.first_reuse_[reuse.miss + 1];
    const Descriptor first = plan.by_lookup_[plan.misses_[reuse.miss].lookup];
    plan.by_lookup_[reuse.lookup] = Descriptor::miss(first.buffer(), first.record(), no_slot);
  }
  std::partial_sum(plan.first_reuse_.begin(), plan.first_reuse_.end(), plan.first_reuse_.begin());

  plan.ready_ = 0;
  const auto add = [&](std::uint32_t& n, std::uint32_t lookup) {
    plan.descriptors_[n] = plan.by_lookup_[lookup];
    plan.at_[n++] = lookup;
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (plan.by_lookup_[i].kind() != LookupKind::miss) add(plan.ready_, static_cast<std::uint32_t>(i));
  std::uint32_t n = plan.ready_;
  plan.list_read_.assign(rows.size(), 0);
  for (ChunkPlan::Wave& wave : plan.waves_) {
    wave.list.first = n;
    for (std::uint32_t i = wave.first_miss; i < wave.first_miss + wave.misses; ++i) {
      const std::uint32_t m = plan.wanted_[i].miss;
      plan.list_read_[n] = plan.wanted_read_[i];
      add(n, plan.misses_[m].lookup);
      for (std::uint32_t r = plan.first_reuse_[m]; r < plan.first_reuse_[m + 1]; ++r) {
        plan.list_read_[n] = plan.wanted_read_[i];
        add(n, plan.reuses_[r].lookup);
      }
    }
    wave.list.last = n;
  }
}

// Lookups of bad pages become zeros, their misses leave nothing in the directory.
void ChunkPlan::fail_reads(std::size_t wave, std::span<const PageFault> faults) {
  const Wave& w = waves_[wave];
  const auto failed = [&](std::uint32_t read) { return faults.empty() || faults[read - w.first_read] != PageFault::none; };
  for (std::uint32_t i = w.list.first; i < w.list.last; ++i) {
    if (!failed(list_read_[i])) continue;
    descriptors_[i] = Descriptor::zero();
    by_lookup_[at_[i]] = Descriptor::zero();
    ++counts_.failed;
  }
  for (std::uint32_t i = w.first_miss; i < w.first_miss + w.misses; ++i)
    if (failed(wanted_read_[i])) bad_[wanted_[i].miss] = 1;
}

StepStatus LayerCore::on_wave(ChunkPlan& plan, std::size_t wave, std::span<const PageFault> faults) {
  if (std::all_of(faults.begin(), faults.end(), [](PageFault f) { return f == PageFault::none; })) return StepStatus::ok;
  plan.fail_reads(wave, faults);
  return StepStatus::read_error;
}

void LayerCore::abandon_wave(ChunkPlan& plan, std::size_t wave, std::uint64_t epoch, bool in_flight) {
  plan.fail_reads(wave, {});
  if (!in_flight) return;
  const auto reads = plan.reads(wave);
  quarantine_.push_back({epoch, {reads.begin(), reads.end()}});
  std::erase_if(free_buffers_, [&](std::uint32_t buffer) {
    return std::any_of(reads.begin(), reads.end(), [&](const PageRead& read) { return read.buffer == buffer; });
  });
}

void LayerCore::settle_chunk(const ChunkPlan& plan) {
  if (!directory_) return;
  for (std::size_t m = 0; m < plan.misses_.size(); ++m) directory_->settle(plan.misses_[m], !plan.bad_[m]);
  directory_->end_step();
}

}  // namespace slacktier
