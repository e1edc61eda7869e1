// Page source `mmap`, a baseline: the image is mapped and its pages are faulted in by touching them, one fault at a time on
// each thread.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "platforms/error.hpp"
#include "platforms/mapped_copy.hpp"
#include "tier/sources/readers.hpp"

namespace slacktier {
namespace {

// The disks of an image as mappings.
class Mappings {
 public:
  explicit Mappings(const OpenDisks& disks) {
    try {
      for (std::uint32_t d = 0; d < disks.count(); ++d) {
        const off_t bytes = ::lseek(disks.descriptor(d), 0, SEEK_END);
        if (bytes < 0) throw_errno("size of " + disks.name(d));
        void* at = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ, MAP_SHARED, disks.descriptor(d), 0);
        if (at == MAP_FAILED) throw_errno("mmap " + disks.name(d));
        views_.push_back({static_cast<const std::byte*>(at), static_cast<std::size_t>(bytes)});
        if (::madvise(at, static_cast<std::size_t>(bytes), MADV_RANDOM) != 0) throw_errno("madvise " + disks.name(d));
      }
    } catch (...) {
      unmap();
      throw;
    }
  }
  ~Mappings() { unmap(); }
  Mappings(const Mappings&) = delete;
  Mappings& operator=(const Mappings&) = delete;

  std::span<const std::byte> of(std::uint32_t disk) const { return views_[disk]; }

 private:
  void unmap() {
    for (const auto view : views_) ::munmap(const_cast<std::byte*>(view.data()), view.size());
    views_.clear();
  }
  std::vector<std::span<const std::byte>> views_;
};

class MmapSource final : public PageSource {
 public:
  MmapSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header, OpenDisks::Access::page_cache),
        maps_(disks_),
        pool_(pool),
        options_(options),
        readers_("mmap", disks_, options_, [this](Share& share) { read_share(share); }) {
    if (options.drop_cache) disks_.drop_cache();
  }

  void submit(ReadBatch& batch) override { readers_.submit(batch); }

  std::string describe() const override {
    return fmt::format("mmap (MADV_RANDOM), {} thread(s) x {} disk(s), one fault at a time each{}", options_.threads,
                       disks_.count(), options_.drop_cache ? ", cache dropped at the start" : "");
  }
  std::string activity() const override { return disks_.cache_state(); }

 private:
  void read_share(Share& share) {
    read_pages(share, disks_, pool_, options_, [&](std::uint64_t page, std::byte* buffer) {
      return touch(share.disk, disks_.offset(*share.batch->segment, page), buffer);
    });
  }

  // A file that was cut after it was mapped and a disk that fails both show as a fault that cannot be served.
  int touch(std::uint32_t disk, std::uint64_t offset, std::byte* page) const {
    const auto view = maps_.of(disk);
    const std::uint32_t bytes = disks_.page_bytes();
    if (offset + bytes > view.size()) return 0;
    return copy_from_mapping(page, view.data() + offset, bytes) ? static_cast<int>(bytes) : -EIO;
  }

  OpenDisks disks_;
  Mappings maps_;
  const PagePool& pool_;
  SourceOptions options_;
  ReaderThreads readers_;  // last: its threads use the others
};

}  // namespace

std::unique_ptr<PageSource> make_mmap_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options) {
  return std::make_unique<MmapSource>(header, pool, options);
}

}  // namespace slacktier
