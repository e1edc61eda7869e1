#include "tier/sources/disks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>

#include "platforms/error.hpp"
#include "platforms/filesystem.hpp"

namespace slacktier {

OpenDisks::OpenDisks(const ImageHeader& header, Access access)
    : names_(header.paths),
      page_bytes_(header.geometry.page_bytes),
      nonce_(header.nonce),
      image_bytes_(header.disk_bytes()) {
  const bool direct = access == Access::direct;
  const std::unique_ptr<void, void (*)(void*)> probe(std::aligned_alloc(page_bytes_, page_bytes_), std::free);
  try {
    for (const auto& disk : names_) {
      const int fd = ::open(disk.c_str(), O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
      if (fd < 0 && errno == EINVAL)
        throw EnvironmentError(fmt::format(
            "{}: its file system has no direct I/O (O_DIRECT refused); put the image on ext4, xfs or a block device", disk));
      if (fd < 0) throw_errno("open " + disk);
      descriptors_.push_back(fd);
      if (!direct) {
        ::posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        continue;
      }
      const ssize_t got = ::pread(fd, probe.get(), page_bytes_, 0);
      if (got < 0 && errno == EINVAL)
        throw EnvironmentError(fmt::format("{}: direct reads of {} bytes are refused; stage with --page-bytes 4096 or more",
                                           disk, page_bytes_));
      if (got < 0) throw_errno("read " + disk);
    }
  } catch (...) {
    close();
    throw;
  }
}

OpenDisks::~OpenDisks() { close(); }

void OpenDisks::close() {
  for (const int fd : descriptors_) ::close(fd);
  descriptors_.clear();
}

int OpenDisks::read(std::uint32_t disk, const ImageSegment& segment, std::uint64_t page, std::byte* to) const {
  ssize_t got;
  do {
    got = ::pread(descriptors_[disk], to, page_bytes_, static_cast<off_t>(offset(segment, page)));
  } while (got < 0 && errno == EINTR);
  return got < 0 ? -errno : static_cast<int>(got);
}

void OpenDisks::drop_cache() const {
  for (const int fd : descriptors_) {
    ::fdatasync(fd);  // pages not yet written cannot be dropped
    if (const int refused = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); refused != 0)
      throw std::system_error(refused, std::generic_category(), "dropping the page cache of " + names_[0]);
  }
}

std::string OpenDisks::cache_state() const {
  std::uint64_t cached = 0;
  for (const int fd : descriptors_) {
    const std::optional<std::uint64_t> bytes = cached_bytes(fd, image_bytes_);
    if (!bytes) return "the system does not tell what the page cache holds of the image";
    cached += *bytes;
  }
  return fmt::format("page cache holds {:.1f}% of the image",
                     100.0 * static_cast<double>(cached) / static_cast<double>(image_bytes_ * descriptors_.size()));
}

void deal_batch(ReadBatch& batch, const OpenDisks& disks, std::uint32_t threads, Dealing dealing,
                const std::function<void(std::uint32_t, std::uint32_t, const Share&)>& give) {
  constexpr std::uint32_t longest_run = 16;
  std::uint32_t pages[max_disks] = {};
  for (const PageRead& read : batch.reads) ++pages[disks.disk_of(read.page)];
  std::uint32_t shares = 0;
  for (std::uint32_t d = 0; d < disks.count(); ++d) {
    shares += std::min(threads, pages[d]);
    batch.taken[d].store(0, std::memory_order_relaxed);
  }
  batch.submitted.store(0, std::memory_order_relaxed);
  batch.remaining.store(shares, std::memory_order_release);
  for (std::uint32_t d = 0; d < disks.count(); ++d) {
    const std::uint32_t parts = std::min(threads, pages[d]);
    for (std::uint32_t t = 0; t < parts; ++t) {
      Share share;
      share.batch = &batch;
      share.dealing = dealing;
      share.disk = d;
      share.part = t;
      share.parts = parts;
      // Small batches, too, go to all threads.
      share.run = std::clamp(pages[d] / (4 * parts), 1u, longest_run);
      give(d, t, share);
    }
  }
}

}  // namespace slacktier
