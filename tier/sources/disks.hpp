// The disks of an image as open files, and how a batch is dealt to the threads that read them. Private to tier.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "tier/source.hpp"

namespace slacktier {

class OpenDisks {
 public:
  enum class Access { direct, page_cache };

  // Opens the disks of the image, in the image's order, read-only. `direct`: with O_DIRECT, which one read proves;
  // `page_cache`: without readahead. Throws std::system_error (cannot be opened or read) or EnvironmentError (no direct I/O
  // there).
  explicit OpenDisks(const ImageHeader& header, Access access = Access::direct);
  ~OpenDisks();
  OpenDisks(const OpenDisks&) = delete;
  OpenDisks& operator=(const OpenDisks&) = delete;

  std::uint32_t count() const { return static_cast<std::uint32_t>(descriptors_.size()); }
  int descriptor(std::uint32_t disk) const { return descriptors_[disk]; }
  const std::string& name(std::uint32_t disk) const { return names_[disk]; }
  std::uint32_t disk_of(std::uint64_t page) const { return static_cast<std::uint32_t>(page % count()); }
  std::uint64_t offset(const ImageSegment& segment, std::uint64_t page) const {
    return segment.base + page / count() * page_bytes_;
  }
  std::uint32_t page_bytes() const { return page_bytes_; }

  // Reads one page, blocking: the bytes that came, or -errno.
  int read(std::uint32_t disk, const ImageSegment& segment, std::uint64_t page, std::byte* to) const;

  // Of disks opened with Access::page_cache.
  void drop_cache() const;
  std::string cache_state() const;  // "page cache holds 12.5% of the image"

  // What is wrong with a page that arrived, by stamp or by whole checksum.
  PageFault check(const ImageSegment& segment, std::uint64_t page, const std::byte* bytes, bool checksum) const {
    const std::span<const std::byte> view(bytes, page_bytes_);
    return checksum ? check_page(view, page, segment.image, nonce_) : check_stamp(view, page, segment.image, nonce_);
  }

 private:
  void close();

  std::vector<int> descriptors_;
  std::vector<std::string> names_;
  std::uint32_t page_bytes_;
  std::uint64_t nonce_;
  std::uint64_t image_bytes_;  // on each disk
};

// How the threads of a disk divide a batch's pages among them.
enum class Dealing {
  beforehand,  // every n-th page each: known before the first is read
  in_turns,    // a few at a time to whoever has room: no thread ends much after the others, or reads the next layer before
               // them
};

// One thread's part of a batch: pages of one disk, numbered in the batch's order.
struct Share {
  ReadBatch* batch = nullptr;
  Dealing dealing = Dealing::beforehand;
  std::uint32_t disk = 0, part = 0, parts = 1;
  std::uint32_t run = 1;                  // pages taken at a time, in turns
  std::uint32_t cursor = 0;               // next read of the batch to look at
  std::uint32_t ordinal = 0;              // pages of this disk seen so far
  std::uint32_t run_at = 0, run_end = 0;  // numbers of the pages taken that were not yet given out
  std::uint32_t outstanding = 0;          // submitted, not yet arrived
  // Whether reads of the batch were not yet looked at; of these, some may be other shares'.
  bool left() const { return cursor < batch->reads.size(); }
  // Undoes the call of next() that gave `i`.
  void put_back(std::uint32_t i) {
    cursor = i;
    --ordinal;
    if (dealing == Dealing::in_turns) --run_at;
  }
  // The next read of this share, or UINT32_MAX when there is none left.
  std::uint32_t next(const OpenDisks& disks) {
    const auto n = static_cast<std::uint32_t>(batch->reads.size());
    if (disks.count() == 1 && (parts == 1 || dealing == Dealing::in_turns)) {  // a page's number is its index
      if (parts > 1) {
        if (run_at == run_end) take_run();
        cursor = run_at++;
      }
      if (cursor >= n) {
        cursor = n;
        return UINT32_MAX;
      }
      ordinal = cursor + 1;
      return cursor++;
    }
    for (; cursor < n; ++cursor)
      if (disks.disk_of(batch->reads[cursor].page) == disk && mine(ordinal++)) return cursor++;
    return UINT32_MAX;
  }

 private:
  void take_run() {
    run_at = batch->taken[disk].fetch_add(run, std::memory_order_relaxed);
    run_end = run_at + run;
  }
  bool mine(std::uint32_t number) {
    if (dealing == Dealing::beforehand) return number % parts == part;
    if (run_at == run_end) take_run();
    if (number != run_at) return false;
    ++run_at;
    return true;
  }
};

// Ends a share; the last one of its batch calls the batch's completion.
inline void finish_share(ReadBatch& batch, Nanos now) {
  if (batch.remaining.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    batch.completed = now;
    batch.done(batch);
  }
}

inline void note_submission(ReadBatch& batch) {
  if (Nanos none = 0; batch.submitted.load(std::memory_order_relaxed) == 0)
    batch.submitted.compare_exchange_strong(none, monotonic_clock().now());
}

// Ends one read: `result` is the bytes that came, or -errno. The tap sees the page first, then it is checked.
// `pages` knows their size and what makes one whole (OpenDisks, or another place that pages come from).
template <class Pages>
void end_read(ReadBatch& batch, std::uint32_t i, int result, std::byte* page, const Pages& pages,
              const SourceOptions& options) {
  if (options.tap) options.tap->arrived(batch, i, page, result);
  batch.errors[i] = result < 0 ? -result : 0;
  if (result < 0)
    batch.faults[i] = PageFault::io;
  else if (result != static_cast<int>(pages.page_bytes()))
    batch.faults[i] = PageFault::cut;  // no retry can complete it: the file ends there
  else
    batch.faults[i] = pages.check(*batch.segment, batch.reads[i].page, page, options.verify_checksum);
}

// Deals a batch to threads: at most `threads` a disk, never more than the disk has pages in the batch. give(disk, thread,
// share) queues the share and wakes its thread.
void deal_batch(ReadBatch& batch, const OpenDisks& disks, std::uint32_t threads, Dealing dealing,
                const std::function<void(std::uint32_t disk, std::uint32_t thread, const Share& share)>& give);

// Shares on their way to one thread: a ring that grows when it is full, so that steady traffic allocates nothing.
class ShareQueue {
 public:
  void push(const Share& share) {
    const std::lock_guard lock(mutex_);
    if (count_ == ring_.size()) {
      std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(first_), ring_.end());
      first_ = 0;
      ring_.resize(2 * ring_.size());
    }
    ring_[(first_ + count_++) % ring_.size()] = share;
  }
  bool empty() {
    const std::lock_guard lock(mutex_);
    return count_ == 0;
  }
  bool pop(Share& share) {
    const std::lock_guard lock(mutex_);
    if (count_ == 0) return false;
    share = ring_[first_];
    first_ = (first_ + 1) % ring_.size();
    --count_;
    return true;
  }

 private:
  std::mutex mutex_;
  std::vector<Share> ring_ = std::vector<Share>(16);
  std::size_t first_ = 0, count_ = 0;
};

std::unique_ptr<PageSource> make_uring_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options);
std::unique_ptr<PageSource> make_pread_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options);
std::unique_ptr<PageSource> make_buffered_source(const ImageHeader& header, const PagePool& pool,
                                                 const SourceOptions& options);
std::unique_ptr<PageSource> make_mmap_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options);
std::unique_ptr<PageSource> make_rdma_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options);
std::unique_ptr<PageSource> make_tcp_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options);

}  // namespace slacktier
