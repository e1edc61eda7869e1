// The staged image: pages of one or more segments (layer, rank) on one or more disks, behind a versioned header.
//
// Layout of each disk (file or block device): 1 MiB header (magic, version, length, checksum, JSON, zero padding), then the
// segments' pages. Page p of a segment lies on disk p mod n at the segment's base + (p / n) * page_bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tier/pages.hpp"
#include "tier/rows.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct ImageSegment {
  int layer = 0;
  std::uint32_t rank = 0;
  std::uint64_t rows = 0;           // rows of the shard at full geometry
  std::uint64_t pages = 0;          // pages of the shard at full geometry
  std::uint64_t stored_pages = 0;   // pages in the image; fewer when the image is scaled (see PageFold)
  std::uint64_t base = 0;           // byte offset of the segment's first page on every disk
  std::uint64_t image = 0;          // trailer id of its pages
};

struct ImageHeader {
  std::uint32_t version = 1;
  std::string table, fingerprint;   // spec name and fingerprint
  std::string origin;               // RowOrigin::describe()
  std::uint64_t seed = 0;
  std::uint64_t nonce = 0;          // of this staging; part of every stamp
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t ranks = 1;
  PageGeometry geometry;
  std::uint32_t disks = 1, disk = 0;
  bool complete = false;            // false while staging; a reader refuses an incomplete image and says how to resume
  std::vector<ImageSegment> segments;

  // The segment of a layer and rank; throws UsageError listing those there are.
  const ImageSegment& segment(int layer, std::uint32_t rank) const;
};

struct StageOptions {
  std::vector<std::string> disks;         // files (created) or block devices
  std::vector<std::string> serials;       // per block device: its serial number, or staging is refused
  bool overwrite_filesystem = false;
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t ranks = 1;
  std::vector<std::uint32_t> only_ranks;  // empty: all
  std::vector<int> layers;                // empty: all
  std::uint32_t page_bytes = 4096;
  std::uint64_t max_bytes = 0;            // scale the image to at most this many bytes over all disks; 0: full size
  std::uint64_t seed = 1;
  int threads = 0;                        // 0: one per CPU
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;  // bytes; called from one thread
};

struct StageReport {
  std::uint64_t bytes = 0, written = 0;   // written < bytes when an interrupted staging was resumed
  double seconds = 0;
  bool direct = false;                    // written with O_DIRECT
};

// Writes generated rows as an image, in parallel, with O_DIRECT where the file system has it; an interrupted staging with the
// same settings is resumed. Throws UsageError (a file that is no image of ours is never overwritten; mounted, held or signed
// devices), EnvironmentError (free space), std::system_error (a full disk keeps what was written and can be resumed).
StageReport stage_image(const TableSpec& spec, const StageOptions& options);

// Reads and checks the headers of all disks of one image (any order). Throws UsageError naming file, field, found and wanted.
ImageHeader read_image_header(const std::vector<std::string>& disks);
// As above, and requires the spec's fingerprint and a complete image, not truncated.
ImageHeader open_image(const std::vector<std::string>& disks, const TableSpec& spec);

struct VerifyReport {
  std::uint64_t pages = 0, bad = 0;
  std::vector<std::string> first_bad;     // up to 10, each naming disk, offset, page and fault
};
// Reads every page (or `sample` random ones), checks trailer and checksum, and every record against the generated origin.
VerifyReport verify_image(const TableSpec& spec, const std::vector<std::string>& disks, std::uint64_t sample,
                          std::function<void(std::uint64_t done, std::uint64_t total)> progress);

// Removes image files, or wipes the headers of block devices (same guards as staging). Refuses what is not an image.
void discard_image(const std::vector<std::string>& disks, const std::vector<std::string>& serials);

}  // namespace slacktier
