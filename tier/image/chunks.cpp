#include "tier/image/chunks.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace slacktier {

Chunks::Chunks(const ImageHeader& header) : disks_(header.disks), page_bytes_(header.geometry.page_bytes) {
  first_chunk_.push_back(0);
  first_byte_.push_back(0);
  for (const ImageSegment& segment : header.segments) {
    const std::uint64_t disk_bytes = header.segment_disk_bytes(segment);
    parts_.push_back({segment.base, disk_bytes});
    first_chunk_.push_back(first_chunk_.back() + (disk_bytes + image_chunk_bytes - 1) / image_chunk_bytes * disks_);
    first_byte_.push_back(first_byte_.back() + disk_bytes * disks_);
  }
}

Chunk Chunks::chunk(std::uint64_t index) const {
  const auto segment =
      static_cast<std::size_t>(std::upper_bound(first_chunk_.begin(), first_chunk_.end(), index) - first_chunk_.begin() - 1);
  const std::uint64_t within = index - first_chunk_[segment], at = within / disks_ * image_chunk_bytes;
  const Part& part = parts_[segment];
  return {segment, static_cast<std::uint32_t>(within % disks_), part.base + at,
          std::min(image_chunk_bytes, part.disk_bytes - at), at / page_bytes_};
}

std::uint64_t Chunks::bytes_before(std::uint64_t index) const {
  if (index >= count()) return first_byte_.back();
  const Chunk next = chunk(index);
  const std::uint64_t at = next.offset - parts_[next.segment].base;
  return first_byte_[next.segment] + at * disks_ + next.disk * next.bytes;
}

std::uint64_t Chunks::chunks_within(std::uint64_t bytes) const {
  std::uint64_t low = 0, high = count();  // bytes_before(low) <= bytes
  while (low < high) {
    const std::uint64_t middle = (low + high + 1) / 2;
    if (bytes_before(middle) <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

PageMaker::PageMaker(const TableSpec& spec, const ImageHeader& header, const TableRows& rows) : header_(header) {
  for (const ImageSegment& segment : header.segments) {
    const std::size_t layer = spec.layer_index(segment.layer);
    const Shard shard = make_shard(spec, layer, header.shard_map, header.ranks, segment.rank);
    origins_.push_back(rows.origin(layer, shard));
  }
}

void PageMaker::make(std::size_t segment_index, std::uint64_t page, std::span<std::byte> out) const {
  const ImageSegment& segment = header_.segments[segment_index];
  const PageGeometry& g = header_.geometry;
  if (page >= segment.stored_pages) {
    std::memset(out.data(), 0, out.size());
    return;
  }
  const std::uint64_t first = page * g.rows_per_page, last = std::min(first + g.rows_per_page, segment.rows);
  origins_[segment_index]->rows(first, last - first, out.data());
  std::byte* const at = out.data() + (last - first) * g.row_bytes;
  std::memset(at, 0, static_cast<std::size_t>(out.data() + out.size() - at));
  seal_page(out, page, segment.image, header_.nonce);
}

void PageMaker::make(const Chunk& chunk, std::span<std::byte> out) const {
  const std::uint64_t page_bytes = header_.geometry.page_bytes;
  std::uint64_t slot = chunk.first_slot, at = 0;
  for (; at < chunk.bytes; at += page_bytes, ++slot) {
    make(chunk.segment, page_at(chunk.disk, slot), out.subspan(at, page_bytes));
  }
}

}  // namespace slacktier
