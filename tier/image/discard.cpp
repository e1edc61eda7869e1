#include <fmt/format.h>
#include <unistd.h>

#include "platforms/error.hpp"
#include "tier/block_device.hpp"
#include "tier/image/disk_file.hpp"
#include "tier/image/header_area.hpp"

namespace slacktier {

void discard_image(const std::vector<std::string>& disks, const std::vector<std::string>& serials) {
  if (disks.empty()) throw UsageError("an image lies on at least one disk: name it");
  // All are looked at before the first is touched.
  std::vector<DiskFile> files;
  for (const std::string& path : disks) {
    DiskFile::for_reading(path);  // it must be there: nothing is created
    guard_device(path, serials, true);
    DiskFile file = DiskFile::for_writing(path);
    AreaState state = AreaState::damaged;
    try {
      state = decode_header_area(file.read_area(), path).state;
    } catch (const UsageError&) {  // an image's all the same
    }
    if (state == AreaState::foreign) throw UsageError(path + ": is no image; it is left as it is");
    files.push_back(std::move(file));
  }
  for (const DiskFile& file : files) {
    if (file.block_device()) {
      file.write_synced(std::vector<std::byte>(image_header_bytes), 0);
    } else if (::unlink(file.path().c_str()) != 0) {
      throw_errno("remove " + file.path());
    }
  }
}

}  // namespace slacktier
