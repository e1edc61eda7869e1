// An image cut into the pieces that are written and read at once, in one fixed order, so that "the first N bytes are staged"
// is a complete record of progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tier/image.hpp"

namespace slacktier {

struct Chunk {
  std::size_t segment = 0;  // index in the header's segments
  std::uint32_t disk = 0;
  std::uint64_t offset = 0;      // on that disk
  std::uint64_t bytes = 0;       // at most image_chunk_bytes, a multiple of 4 KiB
  std::uint64_t first_slot = 0;  // pages of the segment on that disk before the chunk
};

inline constexpr std::uint64_t image_chunk_bytes = 2 << 20;

// Segment after segment; within one, the first chunk of every disk, then the second of every disk, and so on.
class Chunks {
 public:
  explicit Chunks(const ImageHeader& header);
  std::uint64_t count() const { return first_chunk_.back(); }
  Chunk chunk(std::uint64_t index) const;
  // Bytes of all chunks before `index` (<= count()).
  std::uint64_t bytes_before(std::uint64_t index) const;
  // Chunks that lie wholly within the first `bytes`.
  std::uint64_t chunks_within(std::uint64_t bytes) const;

 private:
  struct Part {
    std::uint64_t base, disk_bytes;
  };
  std::uint64_t disks_, page_bytes_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> first_chunk_, first_byte_;
};

// Makes the pages of an image from its rows' origin.
class PageMaker {
 public:
  PageMaker(const TableSpec& spec, const ImageHeader& header, const TableRows& rows);
  // Page number in its segment of slot `slot` on `disk`; the segment's stored_pages or more for slots that stay empty.
  std::uint64_t page_at(std::uint32_t disk, std::uint64_t slot) const { return slot * header_.disks + disk; }
  // A page in full, or zeros for an empty slot. Thread-safe. `out` holds one page.
  void make(std::size_t segment, std::uint64_t page, std::span<std::byte> out) const;
  // All pages of a chunk.
  void make(const Chunk& chunk, std::span<std::byte> out) const;

 private:
  const ImageHeader& header_;
  std::vector<std::unique_ptr<RowOrigin>> origins_;  // one a segment
};

}  // namespace slacktier
