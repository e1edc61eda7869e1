// The file system, or block device, below a path: what it is, and whether direct I/O really works there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace slacktier {

// A line of /proc/self/mountinfo.
struct Mount {
  std::string point;
  std::string type;     // "ext4"
  std::string source;   // "/dev/nvme0n1p2"
  std::string options;  // of the mount and of the file system: "rw,relatime,discard"
};

// The mount that holds `absolute_path`, from the text of mountinfo; nothing when none does.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view absolute_path);

struct PathFacts {
  std::string path;           // absolute, without links; the nearest that exists, when the path itself does not
  bool block_device = false;  // then `mount` says where its node lies, and there are no free bytes
  Mount mount;
  std::optional<dev_t> device;                // of the block device below it, where there is one
  std::uint64_t free_bytes = 0;               // for this user
  std::optional<std::uint32_t> memory_align;  // direct I/O, as statx tells it (Linux 6.1 and later, some file systems);
  std::optional<std::uint32_t> offset_align;  // 0: no direct I/O
};

// Throws UsageError when the path has no existing parent, std::system_error when the system refuses to tell.
PathFacts read_path_facts(const std::string& path);

// Bytes of a file or block device. Throws std::system_error.
std::uint64_t disk_bytes(const std::string& path);

struct DirectIo {
  bool works = false;
  std::uint32_t block = 0;  // the smallest of 4, 16 and 64 KiB with which it works
  std::string reason;       // why not
};

// For a file or directory: writes and reads a scratch file beside or in it, which has no name any more while it exists, and
// looks whether the page cache holds what was read directly. For a block device: reads its first block. Never throws for
// what the file system refuses: that is the answer.
DirectIo probe_direct_io(const std::string& path);

// How much of the first `bytes` of an open file or block device the page cache holds; nothing when the system does not tell.
std::optional<std::uint64_t> cached_bytes(int descriptor, std::uint64_t bytes);

}  // namespace slacktier
