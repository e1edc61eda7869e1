// What an image will hold, by arithmetic alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "platforms/error.hpp"
#include "tier/image.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {

namespace {

constexpr std::uint64_t disk_block = 4096;
constexpr std::uint32_t most_disks = 64;

std::vector<int> chosen_layers(const TableSpec& spec, const std::vector<int>& wanted) {
  std::set<int> chosen;  // depth order
  if (wanted.empty()) {
    for (const LayerTable& table : spec.layers) chosen.insert(table.layer);
  }
  for (const int layer : wanted) {
    spec.layer_index(layer);
    if (!chosen.insert(layer).second) throw UsageError(fmt::format("layer {} is named twice", layer));
  }
  return {chosen.begin(), chosen.end()};
}

std::vector<std::uint32_t> chosen_ranks(std::uint32_t ranks, const std::vector<std::uint32_t>& wanted) {
  std::set<std::uint32_t> chosen;
  for (std::uint32_t rank = 0; wanted.empty() && rank < ranks; ++rank) chosen.insert(rank);
  for (const std::uint32_t rank : wanted) {
    if (!chosen.insert(rank).second) throw UsageError(fmt::format("rank {} is named twice", rank));
  }
  return {chosen.begin(), chosen.end()};
}

// Pages that each segment may store when the image is scaled: an equal share for all, whole blocks on every disk.
std::uint64_t share_of_segment(const ImageHeader& header, std::uint64_t max_bytes, std::size_t segments) {
  const std::uint64_t headers = image_header_bytes * header.disks;
  const std::uint64_t block_pages = std::max<std::uint64_t>(1, disk_block / header.geometry.page_bytes);
  const std::uint64_t share = max_bytes < headers ? 0 : (max_bytes - headers) / segments;
  const std::uint64_t per_disk = share / header.disks / header.geometry.page_bytes / block_pages * block_pages;
  if (per_disk == 0) {
    const std::uint64_t least = headers + segments * header.disks * block_pages * header.geometry.page_bytes;
    throw UsageError(
        fmt::format("an image of {} bytes has no room for a page of each of its {} segments on each of its {} disks: "
                    "at least {} are needed",
                    max_bytes, segments, header.disks, least));
  }
  return per_disk * header.disks;
}

}  // namespace

ImageHeader plan_image(const TableSpec& spec, const StageOptions& options) {
  if (options.disks.empty()) throw UsageError("an image needs at least one disk");
  if (options.disks.size() > most_disks) {
    throw UsageError(fmt::format("{} disks: an image lies on at most {}", options.disks.size(), most_disks));
  }
  const auto rows = options.rows ? options.rows : generated_table(spec, options.seed);
  ImageHeader header;
  header.table = spec.name;
  header.fingerprint = spec.fingerprint();
  header.origin = rows->describe();
  header.seed = options.seed;
  header.shard_map = options.shard_map;
  header.ranks = options.ranks;
  header.geometry = make_page_geometry(options.page_bytes, spec.row_bytes);
  header.disks = static_cast<std::uint32_t>(options.disks.size());
  for (const int layer : chosen_layers(spec, options.layers)) {
    for (const std::uint32_t rank : chosen_ranks(options.ranks, options.only_ranks)) {
      const std::size_t index = spec.layer_index(layer);
      const Shard shard = make_shard(spec, index, options.shard_map, options.ranks, rank);
      if (shard.rows == 0)
        throw UsageError(fmt::format("rank {} of {} owns no row of layer {}", rank, options.ranks, layer));
      ImageSegment segment;
      segment.layer = layer;
      segment.rank = rank;
      segment.rows = shard.rows;
      segment.pages = header.geometry.pages(shard.rows);
      // Equal for equal contents, so that a page of an earlier staging shows as stale and one of another table as foreign.
      segment.image = splitmix64(std::stoull(header.fingerprint, nullptr, 16) ^ splitmix64(rows->identity()));
      for (const std::uint64_t part : {static_cast<std::uint64_t>(options.shard_map), std::uint64_t{options.ranks},
                                       static_cast<std::uint64_t>(layer), std::uint64_t{rank}}) {
        segment.image = splitmix64(segment.image ^ part);
      }
      header.segments.push_back(segment);
    }
  }
  if (header.segments.empty()) throw UsageError("an image needs at least one rank");
  const std::uint64_t share =
      options.max_bytes == 0 ? UINT64_MAX : share_of_segment(header, options.max_bytes, header.segments.size());
  std::uint64_t base = image_header_bytes;
  for (ImageSegment& segment : header.segments) {
    segment.stored_pages = std::min(segment.pages, share);
    segment.base = base;
    base += header.segment_disk_bytes(segment);
  }
  return header;
}

const ImageSegment& ImageHeader::segment(int layer, std::uint32_t rank) const {
  std::vector<std::string> known;
  for (const ImageSegment& segment : segments) {
    if (segment.layer == layer && segment.rank == rank) return segment;
    known.push_back(fmt::format("layer {} rank {}", segment.layer, segment.rank));
  }
  throw UsageError(fmt::format("the image{}{} holds no layer {} rank {} (of {} ranks, {}); it holds {}",
                               paths.empty() ? "" : " ", paths.empty() ? "" : paths.front(), layer, rank, ranks,
                               to_string(shard_map), fmt::join(known, ", ")));
}

std::uint64_t ImageHeader::segment_disk_bytes(const ImageSegment& segment) const {
  const std::uint64_t slots = (segment.stored_pages + disks - 1) / disks;
  return (slots * geometry.page_bytes + disk_block - 1) / disk_block * disk_block;
}

std::uint64_t ImageHeader::disk_bytes() const {
  std::uint64_t bytes = image_header_bytes;
  for (const ImageSegment& segment : segments) bytes += segment_disk_bytes(segment);
  return bytes;
}

std::uint64_t ImageHeader::page_bytes() const { return (disk_bytes() - image_header_bytes) * disks; }

bool ImageHeader::scaled() const {
  return std::any_of(segments.begin(), segments.end(), [](const ImageSegment& s) { return s.stored_pages < s.pages; });
}

}  // namespace slacktier
