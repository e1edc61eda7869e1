// Verifying: every page against its trailer, its checksum and the rows that it should hold.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <set>
#include <tuple>

#include "platforms/error.hpp"
#include "platforms/memory.hpp"
#include "tier/image/chunks.hpp"
#include "tier/image/disk_file.hpp"
#include "tier/image/workers.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {

namespace {

constexpr std::uint64_t disk_block = 4096;
constexpr std::size_t most_page_bytes = 65536;
constexpr std::size_t most_named = 10;
constexpr int sample_readers = 16;  // single pages: the disk's own parallelism decides, not the CPUs

// Bad pages, the first few of them in the image's order whatever order the workers found them in.
class Findings {
 public:
  void add(std::size_t segment, std::uint64_t page, std::string text) {
    const std::lock_guard lock(mutex_);
    ++bad_;
    named_.emplace(segment, page, std::move(text));
    if (named_.size() > most_named) named_.erase(std::prev(named_.end()));
  }
  void fill(VerifyReport& report) const {
    report.bad = bad_;
    for (const auto& [segment, page, text] : named_) report.first_bad.push_back(text);
  }

 private:
  std::mutex mutex_;
  std::uint64_t bad_ = 0;
  std::set<std::tuple<std::size_t, std::uint64_t, std::string>> named_;
};

class Verifier {
 public:
  Verifier(const TableSpec& spec, const ImageHeader& header, const TableRows& rows)
      : header_(header), chunks_(header), maker_(spec, header, rows) {
    for (const std::string& path : header.paths) {
      disks_.push_back(DiskFile::for_reading(path));
      disks_.back().open_bulk(false);
    }
  }

  const Chunks& chunks() const { return chunks_; }

  // Reads a chunk into `buffer` and checks all its pages; returns how many. `scratch` holds one page.
  std::uint64_t check(const Chunk& chunk, std::span<std::byte> buffer, std::span<std::byte> scratch) {
    try {
      disks_[chunk.disk].bulk_read(buffer.first(chunk.bytes), chunk.offset);
    } catch (const std::system_error&) {
      return check_blocks(chunk, buffer, scratch);
    }
    return judge(chunk, buffer.first(chunk.bytes), scratch, nullptr);
  }

  // One page by number.
  void check_page_number(std::size_t segment_index, std::uint64_t page, std::span<std::byte> buffer,
                         std::span<std::byte> scratch) {
    const std::uint64_t page_bytes = header_.geometry.page_bytes, slot = page / header_.disks;
    const auto disk = static_cast<std::uint32_t>(page % header_.disks);
    const std::uint64_t offset = header_.segments[segment_index].base + slot * page_bytes;
    const std::uint64_t from = offset / disk_block * disk_block;
    const std::uint64_t bytes = std::max(page_bytes, disk_block);
    try {
      disks_[disk].bulk_read(buffer.first(bytes), from);
    } catch (const std::system_error& error) {
      report(segment_index, page, disk, offset, error.what());
      return;
    }
    compare(segment_index, page, disk, offset, buffer.subspan(offset - from, page_bytes), scratch);
  }

  void fill(VerifyReport& report) const { findings_.fill(report); }

 private:
  // After a failed read: block by block (or page by page where pages are larger), so that only what is unreadable counts.
  std::uint64_t check_blocks(const Chunk& chunk, std::span<std::byte> buffer, std::span<std::byte> scratch) {
    const std::uint64_t step = std::max<std::uint64_t>(header_.geometry.page_bytes, disk_block);
    std::uint64_t pages = 0;
    for (std::uint64_t at = 0; at < chunk.bytes; at += step) {
      Chunk part = chunk;
      part.offset += at;
      part.bytes = std::min(step, chunk.bytes - at);
      part.first_slot += at / header_.geometry.page_bytes;
      try {
        disks_[part.disk].bulk_read(buffer.first(part.bytes), part.offset);
        pages += judge(part, buffer.first(part.bytes), scratch, nullptr);
      } catch (const std::system_error& error) {
        pages += judge(part, {}, scratch, &error);
      }
    }
    return pages;
  }

  // Every page of the chunk: unreadable when `error` is given, else compared.
  std::uint64_t judge(const Chunk& chunk, std::span<const std::byte> bytes, std::span<std::byte> scratch,
                      const std::system_error* error) {
    const std::uint64_t page_bytes = header_.geometry.page_bytes, stored = header_.segments[chunk.segment].stored_pages;
    std::uint64_t pages = 0, slot = chunk.first_slot;
    for (std::uint64_t at = 0; at < chunk.bytes; at += page_bytes, ++slot) {
      const std::uint64_t page = maker_.page_at(chunk.disk, slot);
      if (page >= stored) continue;
      ++pages;
      if (error != nullptr) {
        report(chunk.segment, page, chunk.disk, chunk.offset + at, error->what());
      } else {
        compare(chunk.segment, page, chunk.disk, chunk.offset + at, bytes.subspan(at, page_bytes), scratch);
      }
    }
    return pages;
  }

  void compare(std::size_t segment_index, std::uint64_t page, std::uint32_t disk, std::uint64_t offset,
               std::span<const std::byte> bytes, std::span<std::byte> scratch) {
    const ImageSegment& segment = header_.segments[segment_index];
    const PageGeometry& g = header_.geometry;
    if (const PageFault fault = check_page(bytes, page, segment.image, header_.nonce); fault != PageFault::none) {
      report(segment_index, page, disk, offset, to_string(fault));
      return;
    }
    maker_.make(segment_index, page, scratch);
    if (std::memcmp(bytes.data(), scratch.data(), bytes.size()) == 0) return;
    for (std::uint32_t record = 0; record < g.rows_per_page; ++record) {
      const std::size_t at = std::size_t{record} * g.row_bytes;
      if (std::memcmp(bytes.data() + at, scratch.data() + at, g.row_bytes) != 0) {
        report(segment_index, page, disk, offset, fmt::format("record {} differs from {}", record, header_.origin));
        return;
      }
    }
    report(segment_index, page, disk, offset, "bytes behind the records differ from zero");
  }

  void report(std::size_t segment_index, std::uint64_t page, std::uint32_t disk, std::uint64_t offset,
              const std::string& fault) {
    const ImageSegment& segment = header_.segments[segment_index];
    findings_.add(segment_index, page,
                  fmt::format("{} at byte {}: layer {} rank {} page {}: {}", header_.paths[disk], offset, segment.layer,
                              segment.rank, page, fault));
  }

  const ImageHeader& header_;
  Chunks chunks_;
  PageMaker maker_;
  std::vector<DiskFile> disks_;
  Findings findings_;
};

// `sample` different pages of all segments, as numbers in [0, pages), in the order in which they are read.
std::vector<std::uint64_t> draw_sample(std::uint64_t sample, std::uint64_t pages, std::uint64_t seed) {
  std::set<std::uint64_t> seen;
  std::vector<std::uint64_t> drawn;
  for (std::uint64_t counter = seed; drawn.size() < sample;) {
    const std::uint64_t page = splitmix64(counter += golden_gamma) % pages;
    if (seen.insert(page).second) drawn.push_back(page);
  }
  return drawn;
}

}  // namespace

VerifyReport verify_image(const TableSpec& spec, const std::vector<std::string>& disks, std::uint64_t sample,
                          std::function<void(std::uint64_t done, std::uint64_t total)> progress, int threads,
                          std::shared_ptr<const TableRows> rows) {
  const ImageHeader header = open_image(disks, spec);
  if (!rows) rows = generated_table(spec, header.seed);
  if (header.origin != rows->describe()) {
    throw UsageError(fmt::format("{}: holds rows of another origin: {}, not {}; name their checkpoint with --rows",
                                 header.paths[0], header.origin, rows->describe()));
  }
  Verifier verifier(spec, header, *rows);
  std::uint64_t total = 0;
  for (const ImageSegment& segment : header.segments) total += segment.stored_pages;
  std::vector<std::uint64_t> drawn;
  const bool whole = sample == 0 || sample >= total;
  if (!whole) {
    drawn = draw_sample(sample, total, header.seed);
    total = sample;
  }
  const std::uint64_t items = whole ? verifier.chunks().count() : drawn.size();
  std::atomic<std::uint64_t> next{0}, done{0};
  std::atomic<bool> stopped{false};
  const auto work = [&](std::size_t) {
    const HostMemory memory(whole ? image_chunk_bytes : most_page_bytes), page(header.geometry.page_bytes, false);
    const std::span buffer(static_cast<std::byte*>(memory.data()), memory.bytes());
    const std::span scratch(static_cast<std::byte*>(page.data()), header.geometry.page_bytes);
    for (std::uint64_t item; !stopped && (item = next++) < items;) {
      if (whole) {
        done += verifier.check(verifier.chunks().chunk(item), buffer, scratch);
        continue;
      }
      std::uint64_t number = drawn[item];
      std::size_t segment = 0;
      for (; number >= header.segments[segment].stored_pages; ++segment) number -= header.segments[segment].stored_pages;
      verifier.check_page_number(segment, number, buffer, scratch);
      ++done;
    }
  };
  const int wanted = threads > 0 ? threads : whole ? default_workers() : sample_readers;
  run_workers(
      static_cast<std::size_t>(wanted), "verify", work,
      [&] {
        if (progress) progress(done, total);
      },
      [&] { stopped = true; });
  VerifyReport report;
  report.pages = done;
  verifier.fill(report);
  return report;
}

}  // namespace slacktier
