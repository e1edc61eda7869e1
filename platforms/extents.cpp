#include "platforms/extents.hpp"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t extents_at_once = 512;

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

std::optional<FileExtents> read_extents(const std::string& path, std::uint64_t begin_at) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (opened < 0) throw_errno("open " + path);
  const Descriptor file(opened);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_errno("stat " + path);
  if (!S_ISREG(status.st_mode)) return std::nullopt;

  FileExtents facts;
  const std::uint64_t size = static_cast<std::uint64_t>(status.st_size);
  facts.bytes = size - std::min(size, begin_at);
  std::vector<std::uint64_t> memory((sizeof(fiemap) + extents_at_once * sizeof(fiemap_extent)) / sizeof(std::uint64_t) + 1);
  auto* map = reinterpret_cast<fiemap*>(memory.data());
  std::uint64_t at = begin_at, placed = 0;
  for (bool last = false; !last && at < size;) {
    std::memset(map, 0, sizeof *map);
    map->fm_start = at;
    map->fm_length = size - at;
    map->fm_flags = FIEMAP_FLAG_SYNC;
    map->fm_extent_count = extents_at_once;
    if (::ioctl(file.get(), FS_IOC_FIEMAP, map) != 0) return std::nullopt;
    const std::uint64_t before = at;
    for (std::uint32_t i = 0; i < map->fm_mapped_extents; ++i) {
      const fiemap_extent& extent = map->fm_extents[i];
      const std::uint64_t begin = std::max<std::uint64_t>(extent.fe_logical, at);
      const std::uint64_t end = std::min<std::uint64_t>(extent.fe_logical + extent.fe_length, size);
      if (end > begin) {
        ++facts.extents;
        placed += end - begin;
        if ((extent.fe_flags & FIEMAP_EXTENT_UNWRITTEN) != 0) facts.unwritten += end - begin;
        if ((extent.fe_flags & FIEMAP_EXTENT_ENCODED) != 0) facts.encoded += end - begin;
        at = end;
      }
      last = last || (extent.fe_flags & FIEMAP_EXTENT_LAST) != 0;
    }
    if (at == before) break;  // a hole up to the end
  }
  facts.holes = facts.bytes - placed;
  return facts;
}

}  // namespace slacktier
