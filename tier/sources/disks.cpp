#include "tier/sources/disks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "platforms/error.hpp"

namespace slacktier {

OpenDisks::OpenDisks(const ImageHeader& header)
    : names_(header.paths), page_bytes_(header.geometry.page_bytes), nonce_(header.nonce) {
  const std::unique_ptr<void, void (*)(void*)> probe(std::aligned_alloc(page_bytes_, page_bytes_), std::free);
  for (const auto& disk : names_) {
    const int fd = ::open(disk.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (fd < 0 && errno == EINVAL)
      throw EnvironmentError(fmt::format(
          "{}: its file system has no direct I/O (O_DIRECT refused); put the image on ext4, xfs or a block device", disk));
    if (fd < 0) throw_errno("open " + disk);
    descriptors_.push_back(fd);
    const ssize_t got = ::pread(fd, probe.get(), page_bytes_, 0);
    if (got < 0 && errno == EINVAL)
      throw EnvironmentError(
          fmt::format("{}: direct reads of {} bytes are refused; stage with --page-bytes 4096 or more", disk, page_bytes_));
    if (got < 0) throw_errno("read " + disk);
  }
}

OpenDisks::~OpenDisks() {
  for (const int fd : descriptors_) ::close(fd);
}

void deal_batch(ReadBatch& batch, const OpenDisks& disks, std::uint32_t threads,
                const std::function<void(std::uint32_t, std::uint32_t, const Share&)>& give) {
  constexpr std::uint32_t max_disks = 64;
  std::uint32_t pages[max_disks] = {};
  for (const PageRead& read : batch.reads) ++pages[disks.disk_of(read.page)];
  std::uint32_t shares = 0;
  for (std::uint32_t d = 0; d < disks.count(); ++d) shares += std::min(threads, pages[d]);
  batch.submitted.store(0, std::memory_order_relaxed);
  batch.remaining.store(shares, std::memory_order_release);
  for (std::uint32_t d = 0; d < disks.count(); ++d) {
    const std::uint32_t parts = std::min(threads, pages[d]);
    for (std::uint32_t t = 0; t < parts; ++t) {
      Share share;
      share.batch = &batch;
      share.disk = d;
      share.part = t;
      share.parts = parts;
      give(d, t, share);
    }
  }
}

}  // namespace slacktier
