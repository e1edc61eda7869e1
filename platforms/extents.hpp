// Where a file's bytes really lie: reads of holes and of extents that were reserved but never written touch no disk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace slacktier {

struct FileExtents {
  std::uint64_t bytes = 0;      // of the file, from where it is looked at
  std::uint64_t extents = 0;    // pieces on the disk
  std::uint64_t holes = 0;      // bytes within the file that have no place on the disk
  std::uint64_t unwritten = 0;  // bytes that have a place but were never written: they read as zeros
  std::uint64_t encoded = 0;    // bytes that are compressed or encrypted: a read costs more than itself
};

// Of a regular file from byte `begin` on, as FIEMAP tells it after writing back what is in memory. Nothing for what is no
// regular file and for file systems without FIEMAP. Throws std::system_error when the file cannot be opened.
std::optional<FileExtents> read_extents(const std::string& path, std::uint64_t begin = 0);

}  // namespace slacktier
