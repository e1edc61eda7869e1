// Reading headers: what an image is, and whether it is the one that a run needs.
#include <fmt/format.h>

#include <cstdint>

#include "platforms/error.hpp"
#include "tier/image/disk_file.hpp"
#include "tier/image/header_area.hpp"
#include "tier/image/same.hpp"

namespace slacktier {

std::string first_difference(const ImageHeader& found, const ImageHeader& wanted) {
  const auto differ = [](const char* field, const auto& is, const auto& should) {
    return is == should ? std::string() : fmt::format("{} is {}, not {}", field, is, should);
  };
  for (const std::string& difference :
       {differ("table", found.table, wanted.table), differ("table fingerprint", found.fingerprint, wanted.fingerprint),
        differ("origin", found.origin, wanted.origin), differ("seed", found.seed, wanted.seed),
        differ("shard map", std::string(to_string(found.shard_map)), std::string(to_string(wanted.shard_map))),
        differ("number of ranks", found.ranks, wanted.ranks),
        differ("page size", found.geometry.page_bytes, wanted.geometry.page_bytes),
        differ("record size", found.geometry.row_bytes, wanted.geometry.row_bytes),
        differ("number of disks", found.disks, wanted.disks),
        differ("number of segments", found.segments.size(), wanted.segments.size())}) {
    if (!difference.empty()) return difference;
  }
  for (std::size_t i = 0; i < found.segments.size(); ++i) {
    const ImageSegment &is = found.segments[i], &should = wanted.segments[i];
    if (is.layer != should.layer || is.rank != should.rank) {
      return fmt::format("segment {} is layer {} rank {}, not layer {} rank {}", i, is.layer, is.rank, should.layer,
                         should.rank);
    }
    if (is.stored_pages != should.stored_pages || is.pages != should.pages || is.base != should.base ||
        is.image != should.image) {
      return fmt::format("layer {} rank {} has {} pages of {}, not {} of {}", is.layer, is.rank, is.stored_pages, is.pages,
                         should.stored_pages, should.pages);
    }
  }
  return "";
}

ImageHeader read_image_header(const std::vector<std::string>& disks) {
  if (disks.empty()) throw UsageError("an image lies on at least one disk: name it");
  ImageHeader first;
  std::vector<std::string> in_order;
  for (std::size_t i = 0; i < disks.size(); ++i) {
    const HeaderArea area = decode_header_area(DiskFile::for_reading(disks[i]).read_area(), disks[i]);
    if (area.state == AreaState::foreign) throw UsageError(disks[i] + ": is not an image (no header); stage it first");
    if (area.state == AreaState::damaged)
      throw UsageError(fmt::format("{}: {}; discard it and stage it again", disks[i], area.problem));
    const ImageHeader& header = area.header;
    if (header.disks != disks.size()) {
      throw UsageError(
          fmt::format("{}: belongs to an image on {} disks, {} are named", disks[i], header.disks, disks.size()));
    }
    if (i == 0) {
      first = header;
      in_order.resize(disks.size());
    }
    if (const std::string difference = first_difference(header, first); !difference.empty()) {
      throw UsageError(fmt::format("{}: is of another image than {}: its {}", disks[i], disks[0], difference));
    }
    if (header.nonce != first.nonce) {
      throw UsageError(fmt::format("{}: is of another staging than {}; stage both again", disks[i], disks[0]));
    }
    if (!in_order[header.disk].empty()) {
      throw UsageError(
          fmt::format("{}: is disk {} of its image, and so is {}", disks[i], header.disk, in_order[header.disk]));
    }
    in_order[header.disk] = disks[i];
    first.complete = first.complete && header.complete;
    first.staged_bytes = std::min(first.staged_bytes, header.staged_bytes);
  }
  first.disk = 0;
  first.paths = std::move(in_order);
  return first;
}

ImageHeader open_image(const std::vector<std::string>& disks, const TableSpec& spec) {
  ImageHeader header = read_image_header(disks);
  if (header.table != spec.name || header.fingerprint != spec.fingerprint()) {
    throw UsageError(fmt::format("{}: holds table {} (fingerprint {}), not {} ({})", header.paths[0], header.table,
                                 header.fingerprint, spec.name, spec.fingerprint()));
  }
  if (!header.complete) {
    throw UsageError(
        fmt::format("{}: its staging was interrupted ({} of {} bytes are there); stage it again with the same "
                    "settings to resume",
                    header.paths[0], header.staged_bytes, header.page_bytes()));
  }
  for (const std::string& path : header.paths) {
    if (const std::uint64_t bytes = DiskFile::for_reading(path).bytes(); bytes < header.disk_bytes()) {
      throw UsageError(fmt::format("{}: is truncated: {} bytes of {}; stage it again", path, bytes, header.disk_bytes()));
    }
  }
  return header;
}

void require_image(const ImageHeader& header, ShardMap map, std::uint32_t ranks, const TableRows& rows) {
  const std::string path = header.paths.empty() ? "the image" : header.paths.front();
  if (header.shard_map != map || header.ranks != ranks) {
    throw UsageError(fmt::format("{}: holds {} shards of {} ranks, the run is about {} shards of {}", path,
                                 to_string(header.shard_map), header.ranks, to_string(map), ranks));
  }
  if (header.origin != rows.describe()) {
    throw UsageError(fmt::format("{}: holds rows of another origin: {}, not {}; a checkpoint is named with --rows", path,
                                 header.origin, rows.describe()));
  }
}

}  // namespace slacktier
