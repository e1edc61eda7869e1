// Wrapper `shared`: others on the same disks. Each of tenants - 1 others reads, for every page of a batch, one other page of
// the same disk and segment, with threads and buffers of its own. The batch is done when its own pages are in.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <numeric>

#include "platforms/memory.hpp"
#include "tier/sources/wrappers.hpp"

namespace slacktier {
namespace {

class ScratchMemory final : public Buffer {
 public:
  explicit ScratchMemory(std::size_t bytes) : memory_(bytes) {
    host_ = memory_.data();
    bytes_ = memory_.bytes();
  }

 private:
  HostMemory memory_;
};

// splitmix64: one tenant draws hundreds of pages a step in the submitting thread.
std::uint64_t draw(std::uint64_t& state) {
  std::uint64_t z = state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}
// From 0 to n - 1.
std::uint64_t draw_below(std::uint64_t& state, std::uint64_t n) { return (draw(state) >> 32) * n >> 32; }

class Tenant {
 public:
  Tenant(const Wrapping& wrapping, std::uint64_t seed)
      : disks_(wrapping.header.paths.size()),
        state_(seed),
        pool_(std::make_unique<ScratchMemory>(wrapping.pool.bytes()), wrapping.pool.page_bytes()) {
    free_.resize(pool_.buffers());
    std::iota(free_.rbegin(), free_.rend(), 0u);
    SourceOptions options = wrapping.options;
    options.tap = nullptr;
    options.verify_checksum = false;
    source_ = wrapping.inner(pool_, options);
  }

  // A tenant whose earlier reads hold its buffers asks for nothing new, as one that waits for its own steps.
  void read_beside(const ReadBatch& own) {
    const std::size_t n = own.reads.size();
    Extra& extra = extras_.take();
    extra.reads.clear();
    {
      const std::lock_guard lock(mutex_);
      if (free_.size() >= n)
        for (const PageRead& read : own.reads) {
          const std::uint64_t disk = read.page % disks_;
          const std::uint64_t on_disk = (own.segment->stored_pages - disk + disks_ - 1) / disks_;
          if (on_disk < 2) continue;
          const std::uint64_t other = draw_below(state_, on_disk - 1);
          extra.reads.push_back({(other + (other >= read.page / disks_)) * disks_ + disk, free_.back(), read.records});
          free_.pop_back();
        }
    }
    skipped_.fetch_add(n - extra.reads.size(), std::memory_order_relaxed);
    if (extra.reads.empty()) return extras_.put_back(extra);
    extra.tenant = this;
    extra.faults.resize(std::max(extra.faults.size(), n));
    extra.errors.resize(std::max(extra.errors.size(), n));
    extra.batch.reads = extra.reads;
    extra.batch.faults = std::span(extra.faults).first(extra.reads.size());
    extra.batch.errors = std::span(extra.errors).first(extra.reads.size());
    extra.batch.segment = own.segment;
    extra.batch.epoch = own.epoch;
    extra.batch.user = &extra;
    extra.batch.done = [](ReadBatch& batch) {
      static_cast<Extra*>(batch.user)->tenant->done(*static_cast<Extra*>(batch.user));
    };
    source_->submit(extra.batch);
  }

  std::uint64_t reads() const { return reads_.load(std::memory_order_relaxed); }
  std::uint64_t skipped() const { return skipped_.load(std::memory_order_relaxed); }

 private:
  struct Extra {
    ReadBatch batch;
    std::vector<PageRead> reads;
    std::vector<PageFault> faults;
    std::vector<int> errors;
    Tenant* tenant = nullptr;
  };

  void done(Extra& extra) {
    reads_.fetch_add(extra.reads.size(), std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      for (const PageRead& read : extra.reads) free_.push_back(read.buffer);
    }
    extras_.put_back(extra);
  }

  const std::uint64_t disks_;
  std::mutex mutex_;
  std::uint64_t state_;
  PagePool pool_;
  std::vector<std::uint32_t> free_;
  RecordPool<Extra> extras_;
  std::atomic<std::uint64_t> reads_{0}, skipped_{0};
  std::unique_ptr<PageSource> source_;  // last: it ends first
};

class SharedSource final : public PageSource {
 public:
  SharedSource(std::uint64_t tenants, std::uint64_t seed, const Wrapping& wrapping)
      : state_(seed), inner_(wrapping.inner(wrapping.pool, wrapping.options)) {
    for (std::uint64_t t = 1; t < tenants; ++t) others_.push_back(std::make_unique<Tenant>(wrapping, seed * 1000 + t));
  }

  // Nobody is always first: the batch goes in at a place among the tenants that is drawn anew each time.
  void submit(ReadBatch& batch) override {
    const std::lock_guard lock(submitting_);
    // A copy of what the others need: the batch may be done, and its owner on to the next, before the last of them is asked.
    ReadBatch own;
    own.segment = batch.segment;
    own.epoch = batch.epoch;
    pages_.assign(batch.reads.begin(), batch.reads.end());
    own.reads = pages_;
    const std::uint64_t turn = draw_below(state_, others_.size() + 1);
    for (std::uint64_t t = 0; t < others_.size(); ++t) {
      if (t == turn) inner_->submit(batch);
      others_[t]->read_beside(own);
    }
    if (turn == others_.size()) inner_->submit(batch);
  }

  std::string describe() const override {
    return fmt::format("{}, shared with {} other(s) who read as many pages", inner_->describe(), others_.size());
  }
  bool set_delay(const LinkDelay& delay) override { return inner_->set_delay(delay); }
  std::size_t registered_bytes() const override { return inner_->registered_bytes(); }
  std::string failure() const override { return inner_->failure(); }
  std::string activity() const override {
    std::uint64_t reads = 0, skipped = 0;
    for (const auto& other : others_) {
      reads += other->reads();
      skipped += other->skipped();
    }
    std::string text = fmt::format("{} pages read by others", reads);
    if (skipped > 0) text += fmt::format(", {} left out while they were behind", skipped);
    const std::string inner = inner_->activity();
    return inner.empty() ? text : inner + "; " + text;
  }

 private:
  std::mutex submitting_;  // guards the two below
  std::uint64_t state_;
  std::vector<PageRead> pages_;
  std::unique_ptr<PageSource> inner_;
  std::vector<std::unique_ptr<Tenant>> others_;
};

}  // namespace

std::unique_ptr<PageSource> make_shared_source(WrapperSettings& settings, const Wrapping* wrapping) {
  const auto tenants = settings.count("tenants", 2, 64);
  const auto seed = settings.count("seed", 0, UINT32_MAX);
  settings.finish();
  if (!tenants) settings.refuse("tenants is needed: how many share the disks, this one included");
  if (wrapping == nullptr) return nullptr;
  return std::make_unique<SharedSource>(*tenants, seed.value_or(1), *wrapping);
}

}  // namespace slacktier
