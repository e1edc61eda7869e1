#include "tier/served_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "platforms/error.hpp"
#include "platforms/numa.hpp"
#include "tier/image/chunks.hpp"
#include "tier/image/disk_file.hpp"
#include "tier/image/header_area.hpp"
#include "tier/image/workers.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {
namespace {

// Runs body(piece) for every piece on workers; body returns the bytes it did.
void for_pieces(std::uint64_t pieces, std::uint64_t total, const ServedTable::ProgressCall& progress,
                const std::function<std::uint64_t(std::uint64_t piece, std::span<std::byte> scratch)>& body) {
  std::atomic<std::uint64_t> next{0}, done{0};
  std::atomic<bool> stopped{false};
  const auto workers = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(pieces, 1, static_cast<std::uint64_t>(std::max(1, default_workers()))));
  run_workers(
      workers, "lay-out",
      [&](std::size_t) {
        const HostMemory memory(image_chunk_bytes);
        const std::span scratch(static_cast<std::byte*>(memory.data()), image_chunk_bytes);
        for (std::uint64_t piece; !stopped && (piece = next++) < pieces;) done += body(piece, scratch);
      },
      [&] {
        if (progress) progress(done, total);
      },
      [&] { stopped = true; });
}

}  // namespace

std::vector<ImageSegment> served_segments(const ImageHeader& header, const ServedPart& part) {
  for (const int layer : part.layers)
    for (const std::uint32_t rank : part.ranks) header.segment(layer, rank);  // throws where there is none
  const auto chosen = [](const auto& wanted, const auto& value) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
  };
  std::vector<ImageSegment> segments;
  for (const ImageSegment& s : header.segments)
    if (chosen(part.layers, s.layer) && chosen(part.ranks, s.rank)) segments.push_back(s);
  if (segments.empty())
    throw UsageError(fmt::format("{}: holds none of the layers and ranks asked for",
                                 header.paths.empty() ? header.table : header.paths.front()));
  return segments;
}

std::vector<ServedPart> deal_parts(std::span<const ImageSegment> segments, std::size_t parts) {
  std::vector<ServedPart> dealt(parts);
  if (parts < 2) return dealt;
  std::set<int> layers;
  std::set<std::uint32_t> ranks;
  for (const ImageSegment& segment : segments) {
    layers.insert(segment.layer);
    ranks.insert(segment.rank);
  }
  std::size_t next = 0;
  if (ranks.size() >= parts)
    for (const std::uint32_t rank : ranks) dealt[next++ % parts].ranks.push_back(rank);
  else if (layers.size() >= parts)
    for (const int layer : layers) dealt[next++ % parts].layers.push_back(layer);
  else
    throw UsageError(fmt::format("{} ranks and {} layers are not enough for {} servers: name fewer addresses", ranks.size(),
                                 layers.size(), parts));
  return dealt;
}

ServedTable::ServedTable(ImageHeader header, const ServedPart& part)
    : header_(std::make_unique<ImageHeader>(std::move(header))), numa_node_(part.numa_node) {
  ImageHeader& h = *header_;
  h.disks = 1;
  h.disk = 0;
  h.complete = true;
  h.paths.clear();
  std::uint64_t base = 0;
  for (ImageSegment& segment : h.segments) {
    segment.base = base;
    base += h.segment_disk_bytes(segment);
  }
  h.staged_bytes = base;
  memory_ = HostMemory(base);
  if (numa_node_ < 0) return;
  if (const std::error_code refused = prefer_node(memory_.data(), memory_.bytes(), numa_node_))
    not_placed_ = refused.message();
}

std::string ServedTable::describe_place() const {
  if (numa_node_ < 0) return "";
  if (!not_placed_.empty())
    return fmt::format("not placed on NUMA node {}: {} (start it with numactl --membind={})", numa_node_, not_placed_,
                       numa_node_);
  const auto share = share_on_node(memory_.data(), memory_.bytes(), numa_node_);
  if (!share) return fmt::format("asked for on NUMA node {}; where it is, the system does not tell", numa_node_);
  return *share == 1 ? fmt::format("all on NUMA node {}", numa_node_)
                     : fmt::format("{:.0f}% on NUMA node {}, which has no more", 100 * *share, numa_node_);
}

void ServedTable::describe() { text_ = header_json(*header_).dump(); }

ServedTable ServedTable::make(const TableSpec& spec, StageOptions options, const ServedPart& part,
                              const ProgressCall& progress) {
  options.disks = {"memory"};
  if (!options.rows) options.rows = generated_table(spec, options.seed);
  ImageHeader header = plan_image(spec, options);
  std::uint64_t nonce = splitmix64(std::stoull(header.fingerprint, nullptr, 16) ^ splitmix64(options.rows->identity()));
  for (const std::uint64_t word : {static_cast<std::uint64_t>(header.shard_map), std::uint64_t{header.ranks},
                                   std::uint64_t{header.geometry.page_bytes}, options.max_bytes})
    nonce = splitmix64(nonce ^ word);
  header.nonce = std::max<std::uint64_t>(nonce, 1);
  header.segments = served_segments(header, part);
  ServedTable table(std::move(header), part);
  const ImageHeader& h = *table.header_;
  const PageMaker maker(spec, h, *options.rows);
  struct Piece {
    std::size_t segment;
    std::uint64_t first, last;
  };
  std::vector<Piece> pieces;
  const std::uint64_t each = std::max<std::uint64_t>(1, image_chunk_bytes / h.geometry.page_bytes);
  for (std::size_t s = 0; s < h.segments.size(); ++s)
    for (std::uint64_t first = 0; first < h.segments[s].stored_pages; first += each)
      pieces.push_back({s, first, std::min(first + each, h.segments[s].stored_pages)});
  for_pieces(pieces.size(), table.bytes(), progress, [&](std::uint64_t i, std::span<std::byte>) {
    const Piece& piece = pieces[i];
    for (std::uint64_t page = piece.first; page < piece.last; ++page)
      maker.make(piece.segment, page, {table.at(piece.segment, page), h.geometry.page_bytes});
    return (piece.last - piece.first) * h.geometry.page_bytes;
  });
  table.describe();
  return table;
}

ServedTable ServedTable::load(const std::vector<std::string>& disks, const ServedPart& part, const ProgressCall& progress) {
  ImageHeader image = read_image_header(disks);
  if (!image.complete)
    throw UsageError(
        fmt::format("{}: its staging was interrupted; stage it again to resume, then serve it", image.paths[0]));
  image.segments = served_segments(image, part);
  ServedTable table(image, part);
  std::vector<DiskFile> files;
  for (const std::string& path : image.paths) {
    files.push_back(DiskFile::for_reading(path));
    files.back().open_bulk(false);
    if (files.back().bytes() < image.disk_bytes() && !files.back().block_device() && part.layers.empty() &&
        part.ranks.empty())
      throw UsageError(
          fmt::format("{}: is truncated: {} bytes of {}; stage it again", path, files.back().bytes(), image.disk_bytes()));
  }
  const Chunks chunks(image);
  const std::uint64_t page_bytes = image.geometry.page_bytes;
  for_pieces(chunks.count(), chunks.bytes_before(chunks.count()), progress,
             [&](std::uint64_t i, std::span<std::byte> scratch) {
               const Chunk chunk = chunks.chunk(i);
               const ImageSegment& segment = image.segments[chunk.segment];
               files[chunk.disk].bulk_read(scratch.first(chunk.bytes), chunk.offset);
               std::uint64_t slot = chunk.first_slot;
               for (std::uint64_t at = 0; at < chunk.bytes; at += page_bytes, ++slot) {
                 const std::uint64_t page = slot * image.disks + chunk.disk;
                 if (page >= segment.stored_pages) continue;
                 const auto bytes = scratch.subspan(at, page_bytes);
                 if (const PageFault fault = check_page(bytes, page, segment.image, image.nonce); fault != PageFault::none)
                   throw CheckFailed(fmt::format("{} at byte {}: layer {} rank {} page {}: {}; stage it again",
                                                 image.paths[chunk.disk], chunk.offset + at, segment.layer, segment.rank,
                                                 page, to_string(fault)));
                 std::memcpy(table.at(chunk.segment, page), bytes.data(), page_bytes);
               }
               return chunk.bytes;
             });
  table.describe();
  return table;
}

}  // namespace slacktier
