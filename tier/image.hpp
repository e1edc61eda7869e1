// The staged image: pages of one or more segments (layer, rank) on one or more disks, behind a versioned header.
//
// Layout of each disk (file or block device), all numbers little-endian: a header area of 1 MiB, then the segments' pages.
// Page p of a segment lies on disk p mod n at the segment's base + (p / n) * page_bytes; bases are multiples of 4 KiB.
// The header area is two slots of 512 KiB, written in turn, so that one is whole at any moment. A slot is magic (8 bytes),
// version (u32), length of the JSON (u32), sequence (u64), XXH3-64 of those 24 bytes and the JSON (u64), the JSON, zeros.
// The valid slot of the higher sequence counts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tier/pages.hpp"
#include "tier/rows.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

inline constexpr std::uint32_t image_version = 1;
inline constexpr std::uint64_t image_header_bytes = 1 << 20;

struct ImageSegment {
  int layer = 0;
  std::uint32_t rank = 0;
  std::uint64_t rows = 0;          // rows of the shard at full geometry
  std::uint64_t pages = 0;         // pages of the shard at full geometry
  std::uint64_t stored_pages = 0;  // pages in the image; fewer when the image is scaled (see PageFold)
  std::uint64_t base = 0;          // byte offset of the segment's first page on every disk
  std::uint64_t image = 0;         // trailer id of its pages
};

struct ImageHeader {
  std::uint32_t version = image_version;
  std::string table, fingerprint;  // spec name and fingerprint
  std::string origin;              // RowOrigin::describe()
  std::uint64_t seed = 0;
  std::uint64_t nonce = 0;  // of this staging; part of every stamp
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t ranks = 1;
  PageGeometry geometry;
  std::uint32_t disks = 1, disk = 0;
  bool complete = false;           // false while staging; a reader refuses an incomplete image and says how to resume
  std::uint64_t staged_bytes = 0;  // of all disks' page bytes, in staging order; what a resumed staging need not write again
  std::vector<ImageSegment> segments;
  std::vector<std::string> paths;  // the disks in the image's order, as they were opened; not stored

  // The segment of a layer and rank; throws UsageError listing those there are.
  const ImageSegment& segment(int layer, std::uint32_t rank) const;
  // Bytes that a segment takes on each disk, a multiple of 4 KiB.
  std::uint64_t segment_disk_bytes(const ImageSegment& segment) const;
  // Bytes of each disk, header area included; and page bytes over all disks.
  std::uint64_t disk_bytes() const;
  std::uint64_t page_bytes() const;
  bool scaled() const;  // some segment folds
};

struct StageOptions {
  std::vector<std::string> disks;    // files (created) or block devices
  std::vector<std::string> serials;  // the serial numbers of the block devices among them, or staging is refused
  bool overwrite_filesystem = false;
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t ranks = 1;
  std::vector<std::uint32_t> only_ranks;  // empty: all
  std::vector<int> layers;                // empty: all
  std::uint32_t page_bytes = 4096;
  std::uint64_t max_bytes = 0;  // scale the image to at most this many bytes over all disks, headers included; 0: full size
  std::uint64_t seed = 1;       // of generated rows
  std::shared_ptr<const TableRows> rows;  // null: generated with the seed
  int threads = 0;                        // 0: two per CPU, so that rows are made while others are written
  // Bytes; called from the caller's thread, about ten times a second. What it throws stops the staging, which can be
  // resumed.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

struct StageReport {
  std::uint64_t bytes = 0,
                written = 0;  // page bytes; written < bytes when an interrupted staging was resumed, 0 when all was there
  double seconds = 0;
  bool direct = false;                // written with O_DIRECT on every disk
  std::vector<std::string> buffered;  // the disks without it
};

// The header that staging would write, from arithmetic alone: no disk is touched, nonce and staged_bytes are 0.
ImageHeader plan_image(const TableSpec& spec, const StageOptions& options);

// Writes rows as an image, in parallel, with O_DIRECT where the file system has it; an interrupted staging with
// the same settings is resumed, a complete one left as it is. Throws UsageError (a file that is no image of ours, or one
// with other settings, is never overwritten; mounted, held or signed devices), EnvironmentError (free space),
// std::system_error (a disk that fills up or fails on the way keeps what was written, and staging can be resumed).
StageReport stage_image(const TableSpec& spec, const StageOptions& options);

// Reads and checks the headers of all disks of one image (any order). Throws UsageError naming file, field, found and
// wanted.
ImageHeader read_image_header(const std::vector<std::string>& disks);
// As above, and requires the spec's fingerprint and a complete image, not truncated.
ImageHeader open_image(const std::vector<std::string>& disks, const TableSpec& spec);
// Requires that an image holds the shards and rows that a run is about; throws UsageError naming found and wanted.
void require_image(const ImageHeader& header, ShardMap map, std::uint32_t ranks, const TableRows& rows);

struct VerifyReport {
  std::uint64_t pages = 0, bad = 0;
  std::vector<std::string> first_bad;  // up to 10, each naming disk, offset, page and fault
};
// Reads every page (or `sample` different ones, drawn with the image's seed), checks trailer and checksum, and every record
// against its origin: `rows`, or where that is null generated rows of the image's seed. Throws UsageError as open_image, and
// when the image holds rows of another origin; unreadable pages are counted as bad. `progress` (pages; may be empty) is
// called from the caller's thread and may throw.
VerifyReport verify_image(const TableSpec& spec, const std::vector<std::string>& disks, std::uint64_t sample,
                          std::function<void(std::uint64_t done, std::uint64_t total)> progress, int threads = 0,
                          std::shared_ptr<const TableRows> rows = {});

// Removes image files, or wipes the headers of block devices (same guards as staging). Refuses what is not an image.
void discard_image(const std::vector<std::string>& disks, const std::vector<std::string>& serials);

}  // namespace slacktier
