// A page source without a tier around it: batches of pages into a pool, their faults and times.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/executor.hpp"
#include "tests/unit/tier/small_table.hpp"
#include "tier/pool.hpp"
#include "tier/source.hpp"

namespace slacktier::testing {

// pages[i] into buffer first_buffer + i.
inline std::vector<PageRead> into_buffers(const std::vector<std::uint64_t>& pages, std::uint32_t first_buffer) {
  std::vector<PageRead> reads;
  for (const std::uint64_t page : pages) reads.push_back({page, first_buffer + static_cast<std::uint32_t>(reads.size())});
  return reads;
}

// One batch of a segment.
class Reading {
 public:
  Reading(PageSource& source, const ImageSegment& segment, const std::vector<std::uint64_t>& pages,
          std::uint32_t first_buffer = 0)
      : Reading(source, segment, into_buffers(pages, first_buffer)) {}
  Reading(PageSource& source, const ImageSegment& segment, std::span<const PageRead> wanted)
      : reads(wanted.begin(), wanted.end()), faults(reads.size(), PageFault::none), errors(reads.size(), 0) {
    batch.reads = reads;
    batch.faults = faults;
    batch.errors = errors;
    batch.segment = &segment;
    batch.user = this;
    batch.done = [](ReadBatch& done) {
      auto& self = *static_cast<Reading*>(done.user);
      self.done_calls.fetch_add(1);
      self.bell.ring();
    };
    begun = monotonic_clock().now();
    source.submit(batch);
  }
  ~Reading() { wait(); }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

  // The bell's count is the last that `done` touches here.
  Reading& wait() {
    bell.wait(0);
    return *this;
  }
  bool done() const { return bell.count() > 0; }
  Nanos took() { return wait().batch.completed - begun; }

  std::vector<PageRead> reads;
  std::vector<PageFault> faults;
  std::vector<int> errors;
  ReadBatch batch;
  Nanos begun = 0;
  std::atomic<int> done_calls{0};
  Doorbell bell;
};

// The small table staged on `disks` files, and a pool for its pages.
struct SourceBench {
  ScratchFolder folder;
  TableSpec spec = small_table(folder);
  std::vector<std::string> disks;
  std::unique_ptr<Device> device = open_device("cpu");
  ImageHeader image;
  PagePool pool{*device, 4096, 1024};

  explicit SourceBench(std::uint32_t disk_count = 1) : disks(stage_small(folder, spec, disk_count)) {
    image = open_image(disks, spec);
  }
  std::unique_ptr<PageSource> open(const std::string& name, const std::vector<std::string>& wrappers = {},
                                   SourceOptions options = {}) {
    return make_source(name, image, pool, options, wrappers);
  }
  const ImageSegment& segment(std::size_t layer = 0) const { return image.segments[layer]; }
  bool whole(const ImageSegment& of, const PageRead& read) const {
    return check_page({pool.page(read.buffer), 4096}, read.page, of.image, image.nonce) == PageFault::none;
  }
};

inline std::vector<std::uint64_t> first_pages(std::uint64_t n) {
  std::vector<std::uint64_t> pages(n);
  for (std::uint64_t p = 0; p < n; ++p) pages[p] = p;
  return pages;
}

}  // namespace slacktier::testing
