// What is known of the storage below a path before anything is measured on it, and what of that would spoil a measurement.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platforms/disk.hpp"
#include "platforms/extents.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/host.hpp"
#include "platforms/io_uring_probe.hpp"

namespace slacktier {

struct StorageFacts {
  PathFacts path;
  DiskFacts disk;  // without a name where no block device is below the path
  DirectIo direct;
  std::optional<FileExtents> extents;  // of a regular file, from `begin` on
  std::optional<double> zero_share;    // of pages that were sampled, those that hold zeros only; see sample_zeros
};

// Of a file, folder or block device. Reads a page of it directly; in a folder a scratch file shows whether that works.
// `begin`: where the file's pages begin; what lies before is not read at random and may be only reserved. `root` comes
// before /sys (see proc_text.hpp). Throws UsageError when the path has no existing parent, std::system_error when the system
// refuses to tell.
StorageFacts read_storage_facts(const std::string& path, std::uint64_t begin = 0, const std::string& root = "");

// The share of zero pages among 64 pages of 4 KiB drawn from bytes begin … end of a file or block device: trimmed, never
// written, or holes. Nothing when there is no such page or they cannot be read.
std::optional<double> sample_zeros(const std::string& path, std::uint64_t begin, std::uint64_t end);

struct Finding {
  std::string code;   // snake_case, stable: "pcie_link_slow"
  std::string what;   // as found, with the values: "nvme0n1: PCIe link at 8.0 GT/s x4 of 16.0 GT/s x4"
  std::string why;    // why it matters: "reads take longer than the disk can do"
  std::string fix;    // a command or an action
  bool note = false;  // worth knowing before a measurement, no reason to doubt one
  std::string text() const { return what + ": " + why + "; " + fix; }
};

// What of these facts would make read times wrong or worse than they need be, the gravest first; empty when nothing does.
std::vector<Finding> preflight(const StorageFacts& storage, const HostFacts& host, const IoUringSupport& io_uring);
// Of this host.
std::vector<Finding> preflight(const std::string& path, std::uint64_t begin = 0);

}  // namespace slacktier
