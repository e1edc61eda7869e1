#include "tier/image/disk_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "platforms/error.hpp"
#include "platforms/memory.hpp"
#include "tier/image.hpp"

namespace slacktier {

namespace {

// Calls transfer(done, rest) until all is done; a short transfer is continued, an end of file is an error.
template <class Transfer>
void transfer_all(const char* verb, const std::string& path, std::size_t bytes, std::uint64_t offset, Transfer transfer) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t moved = transfer(done, bytes - done);
    if (moved > 0) {
      done += static_cast<std::size_t>(moved);
    } else if (moved == 0) {
      throw std::system_error(EIO, std::generic_category(),
                              fmt::format("{} {} at byte {}: the file ends", verb, path, offset + done));
    } else if (errno != EINTR) {
      throw_errno(fmt::format("{} {} at byte {}", verb, path, offset + done));
    }
  }
}

}  // namespace

DiskFile DiskFile::for_reading(const std::string& path) {
  DiskFile file;
  file.path_ = path;
  file.buffered_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file.buffered_ < 0) throw UsageError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  struct stat status {};
  if (::fstat(file.buffered_, &status) != 0) throw_errno("stat " + path);
  file.block_device_ = S_ISBLK(status.st_mode);
  file.number_ = file.block_device_ ? status.st_rdev : status.st_dev;
  if (!file.block_device_ && !S_ISREG(status.st_mode)) throw UsageError(path + ": is neither a file nor a block device");
  return file;
}

DiskFile DiskFile::for_writing(const std::string& path) {
  struct stat before {};
  const bool exists = ::stat(path.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode) && !S_ISBLK(before.st_mode)) {
    throw UsageError(path + ": is neither a file nor a block device");
  }
  DiskFile file;
  file.path_ = path;
  file.block_device_ = exists && S_ISBLK(before.st_mode);
  file.created_ = !exists;
  const int flags = O_RDWR | O_CLOEXEC | (file.block_device_ ? O_EXCL : O_CREAT) | (exists ? 0 : O_EXCL);
  file.buffered_ = ::open(path.c_str(), flags, 0644);
  if (file.buffered_ < 0 && errno == EBUSY) throw UsageError(path + ": the block device is in use");
  if (file.buffered_ < 0) throw UsageError(fmt::format("{}: cannot be opened for writing: {}", path, std::strerror(errno)));
  if (::flock(file.buffered_, LOCK_EX | LOCK_NB) != 0) {
    throw UsageError(path + ": another process is staging or discarding it");
  }
  struct stat status {};
  if (::fstat(file.buffered_, &status) != 0) throw_errno("stat " + path);
  file.number_ = file.block_device_ ? status.st_rdev : status.st_dev;
  return file;
}

DiskFile::DiskFile(DiskFile&& other) noexcept
    : path_(std::move(other.path_)),
      buffered_(std::exchange(other.buffered_, -1)),
      bulk_(std::exchange(other.bulk_, -1)),
      block_device_(other.block_device_),
      created_(other.created_),
      direct_(other.direct_),
      number_(other.number_) {}

DiskFile::~DiskFile() {
  if (bulk_ >= 0) ::close(bulk_);
  if (buffered_ >= 0) ::close(buffered_);
}

std::uint64_t DiskFile::bytes() const {
  std::uint64_t size = 0;
  if (block_device_) {
    if (::ioctl(buffered_, BLKGETSIZE64, &size) != 0) throw_errno("size of " + path_);
    return size;
  }
  struct stat status {};
  if (::fstat(buffered_, &status) != 0) throw_errno("stat " + path_);
  return static_cast<std::uint64_t>(status.st_size);
}

std::uint64_t DiskFile::allocated_bytes() const {
  if (block_device_) return bytes();
  struct stat status {};
  if (::fstat(buffered_, &status) != 0) throw_errno("stat " + path_);
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::uint64_t DiskFile::free_bytes() const {
  struct statvfs status {};
  if (::fstatvfs(buffered_, &status) != 0) throw_errno("free space of " + path_);
  return static_cast<std::uint64_t>(::geteuid() == 0 ? status.f_bfree : status.f_bavail) * status.f_frsize;
}

std::vector<std::byte> DiskFile::read_area() const {
  std::vector<std::byte> area(std::min(bytes(), image_header_bytes));
  transfer_all("read", path_, area.size(), 0, [&](std::size_t done, std::size_t rest) {
    return ::pread(buffered_, area.data() + done, rest, static_cast<off_t>(done));
  });
  return area;
}

void DiskFile::write_synced(std::span<const std::byte> data, std::uint64_t offset) const {
  transfer_all("write", path_, data.size(), offset, [&](std::size_t done, std::size_t rest) {
    return ::pwrite(buffered_, data.data() + done, rest, static_cast<off_t>(offset + done));
  });
  sync();
}

void DiskFile::allocate(std::uint64_t size) const {
  if (::fallocate(buffered_, 0, 0, static_cast<off_t>(size)) == 0) return;
  if (errno != EOPNOTSUPP) throw_errno("allocate " + path_);
  if (bytes() < size && ::ftruncate(buffered_, static_cast<off_t>(size)) != 0) throw_errno("extend " + path_);
}

void DiskFile::sync() const {
  if (::fdatasync(buffered_) != 0) throw_errno("sync " + path_);
}

void DiskFile::open_bulk(bool writing) {
  const int mode = (writing ? O_RDWR : O_RDONLY) | O_CLOEXEC;
  struct statfs system {};
  if (::fstatfs(buffered_, &system) != 0) throw_errno("file system of " + path_);
  // Recent kernels let O_DIRECT be set on these and ignore it.
  const bool memory = !block_device_ && (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
  if (!memory && (bulk_ = ::open(path_.c_str(), mode | O_DIRECT)) >= 0) {
    const HostMemory probe(4096, false);
    if (::pread(bulk_, probe.data(), 4096, 0) >= 0) {
      direct_ = true;
      return;
    }
    ::close(bulk_);
  }
  bulk_ = ::open(path_.c_str(), mode);
  if (bulk_ < 0) throw_errno("open " + path_);
}

void DiskFile::bulk_read(std::span<std::byte> data, std::uint64_t offset) const {
  transfer_all("read", path_, data.size(), offset, [&](std::size_t done, std::size_t rest) {
    return ::pread(bulk_, data.data() + done, rest, static_cast<off_t>(offset + done));
  });
}

void DiskFile::bulk_write(std::span<const std::byte> data, std::uint64_t offset) const {
  transfer_all("write", path_, data.size(), offset, [&](std::size_t done, std::size_t rest) {
    return ::pwrite(bulk_, data.data() + done, rest, static_cast<off_t>(offset + done));
  });
}

}  // namespace slacktier
