// A file or block device that an image is staged on or read from.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace slacktier {

// Movable; closes its descriptors. Offsets and lengths of direct() transfers are multiples of 4 KiB, from page-aligned
// memory.
class DiskFile {
 public:
  // Throws UsageError when it cannot be opened or is neither a file nor a block device.
  static DiskFile for_reading(const std::string& path);
  // A file that is not there is created; a block device is opened exclusively. Locked against other stagings until closed.
  static DiskFile for_writing(const std::string& path);

  DiskFile(DiskFile&& other) noexcept;
  DiskFile& operator=(DiskFile&&) = delete;
  ~DiskFile();

  const std::string& path() const { return path_; }
  bool block_device() const { return block_device_; }
  bool created() const { return created_; }  // by for_writing
  dev_t number() const { return number_; }   // of a block device; of a file: its file system's
  int descriptor() const { return buffered_; }
  std::uint64_t bytes() const;
  // Bytes that the file system has given the file already, and those it could still give.
  std::uint64_t allocated_bytes() const;
  std::uint64_t free_bytes() const;

  // The header area as far as the disk goes.
  std::vector<std::byte> read_area() const;
  // Through the page cache, then to the disk.
  void write_synced(std::span<const std::byte> bytes, std::uint64_t offset) const;
  // Gives the file its full size, on the disk as well where the file system can (else only in name). Throws
  // std::system_error.
  void allocate(std::uint64_t bytes) const;
  void sync() const;

  // Opens the descriptor of bulk transfers, for direct I/O where it really is (proved by one read of the first 4 KiB; never
  // on tmpfs, which only pretends).
  void open_bulk(bool writing);
  bool direct() const { return direct_; }
  // Whole transfers or std::system_error naming disk and offset. Thread-safe.
  void bulk_read(std::span<std::byte> bytes, std::uint64_t offset) const;
  void bulk_write(std::span<const std::byte> bytes, std::uint64_t offset) const;

 private:
  DiskFile() = default;
  std::string path_;
  int buffered_ = -1, bulk_ = -1;
  bool block_device_ = false, created_ = false, direct_ = false;
  dev_t number_ = 0;
};

}  // namespace slacktier
