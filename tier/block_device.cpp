#include "tier/block_device.hpp"

#include <blkid/blkid.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "platforms/error.hpp"

namespace slacktier {

namespace fs = std::filesystem;

namespace {

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string trimmed(std::string text) {
  const char* const blanks = " \t\r\n";
  text.erase(text.find_last_not_of(blanks) + 1);
  text.erase(0, text.find_first_not_of(blanks));
  return text;
}

std::string number_text(dev_t number) { return fmt::format("{}:{}", major(number), minor(number)); }

// The device's folder in sysfs, with symbolic links resolved: .../block/nvme0n1, or .../block/nvme0n1/nvme0n1p1.
fs::path device_folder(const DeviceRecords& records, dev_t number) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::path(records.sysfs) / "dev/block" / number_text(number), error);
  if (error) {
    throw EnvironmentError(fmt::format("block device {} is not in {}/dev/block: sysfs is needed to tell what uses it",
                                       number_text(number), records.sysfs));
  }
  return folder;
}

bool is_partition(const fs::path& folder) { return fs::exists(folder / "partition"); }

// The device, its partitions, and the disk around it.
std::vector<fs::path> related_folders(const fs::path& folder) {
  std::vector<fs::path> folders{folder};
  if (is_partition(folder)) {
    folders.push_back(folder.parent_path());
  } else {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.is_directory() && is_partition(entry.path())) folders.push_back(entry.path());
    }
  }
  return folders;
}

// mountinfo: id, parent, major:minor, root, mount point, options ..., "-", type, source, ...
struct Mount {
  std::string number, point, source;
};

std::vector<Mount> parse_mounts(const std::string& text) {
  std::vector<Mount> mounts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string id, parent, root, word;
    Mount mount;
    words >> id >> parent >> mount.number >> root >> mount.point;
    while (words >> word && word != "-") {
    }
    words >> word >> mount.source;
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

using Probe = std::unique_ptr<std::remove_pointer_t<blkid_probe>, void (*)(blkid_probe)>;

void choose_everything(blkid_probe probe) {
  blkid_probe_enable_superblocks(probe, 1);
  blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM);
  blkid_probe_enable_partitions(probe, 1);
  blkid_probe_set_partitions_flags(probe, BLKID_PARTS_FORCE_GPT | BLKID_PARTS_MAGIC);
}

// Type of what the last probing step found.
std::string found_type(blkid_probe probe) {
  const char* type = nullptr;
  if (blkid_probe_lookup_value(probe, "TYPE", &type, nullptr) == 0) return type;
  if (blkid_probe_lookup_value(probe, "PTTYPE", &type, nullptr) == 0) return fmt::format("{} partition table", type);
  return "unknown signature";
}

}  // namespace

DeviceRecords DeviceRecords::current() { return {"/sys", read_text("/proc/self/mountinfo"), read_text("/proc/swaps")}; }

std::string device_serial(const DeviceRecords& records, dev_t number) {
  fs::path folder = device_folder(records, number);
  if (is_partition(folder)) folder = folder.parent_path();
  for (const char* name : {"serial", "device/serial"}) {
    if (std::string serial = trimmed(read_text(folder / name)); !serial.empty()) return serial;
  }
  const std::string page = read_text(folder / "device/vpd_pg80");  // four bytes of page header, then the number
  return page.size() > 4 ? trimmed(page.substr(4).c_str()) : "";
}

std::vector<std::string> device_uses(const DeviceRecords& records, dev_t number) {
  const auto mounts = parse_mounts(records.mounts);
  std::vector<std::string> uses;
  for (const fs::path& folder : related_folders(device_folder(records, number))) {
    const std::string name = folder.filename().string(), node = "/dev/" + name, id = trimmed(read_text(folder / "dev"));
    // Some file systems (btrfs) mount under a number of their own and give their device only as the source.
    for (const Mount& mount : mounts) {
      std::error_code error;
      if (mount.number == id || mount.source == node || fs::weakly_canonical(mount.source, error) == node) {
        uses.push_back(fmt::format("{} is mounted at {}", name, mount.point));
      }
    }
    std::istringstream swaps(records.swaps);
    for (std::string line; std::getline(swaps, line);) {
      if (line.substr(0, line.find_first_of(" \t")) == node) uses.push_back(name + " is in use as swap");
    }
    std::error_code error;
    for (const auto& holder : fs::directory_iterator(folder / "holders", error)) {
      uses.push_back(fmt::format("{} is held by {}", name, holder.path().filename().string()));
    }
  }
  return uses;
}

std::vector<std::string> disk_signatures(const std::string& path) {
  const Probe probe(blkid_new_probe_from_filename(path.c_str()), blkid_free_probe);
  if (!probe) throw_errno("look for file systems on " + path);
  choose_everything(probe.get());
  std::vector<std::string> found;
  int result = 0;
  while ((result = blkid_do_probe(probe.get())) == 0) found.push_back(found_type(probe.get()));
  if (result < 0) throw std::system_error(EIO, std::generic_category(), "look for file systems on " + path);
  return found;
}

void wipe_signatures(int descriptor, const std::string& path) {
  const Probe probe(blkid_new_probe(), blkid_free_probe);
  if (!probe || blkid_probe_set_device(probe.get(), descriptor, 0, 0) != 0) throw_errno("look for file systems on " + path);
  choose_everything(probe.get());
  while (blkid_do_probe(probe.get()) == 0) {
    if (blkid_do_wipe(probe.get(), 0) != 0) throw_errno(fmt::format("wipe {} from {}", found_type(probe.get()), path));
  }
}

void require_free_device(const DeviceRecords& records, const std::string& path, dev_t number,
                         const std::vector<std::string>& serials, bool overwrite_filesystem) {
  const std::string serial = device_serial(records, number);
  if (serial.empty()) {
    throw UsageError(path + ": the block device has no serial number in sysfs by which to name it safely; use a file on it");
  }
  bool named = false;
  for (const std::string& given : serials) named = named || given == serial;
  if (!named) {
    throw UsageError(
        serials.empty()
            ? fmt::format("{}: a block device is written only when named by its serial too: --serial {}", path, serial)
            : fmt::format("{}: its serial is {}, not {}", path, serial, fmt::join(serials, " or ")));
  }
  if (const auto uses = device_uses(records, number); !uses.empty()) {
    throw UsageError(fmt::format("{}: {}; only an unused device is written", path, fmt::join(uses, ", ")));
  }
  if (overwrite_filesystem) return;
  if (const auto found = disk_signatures(path); !found.empty()) {
    throw UsageError(fmt::format("{}: carries {}; --overwrite-filesystem destroys it", path, fmt::join(found, ", ")));
  }
}

void guard_device(const std::string& path, const std::vector<std::string>& serials, bool overwrite_filesystem) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISBLK(status.st_mode)) return;
  require_free_device(DeviceRecords::current(), path, status.st_rdev, serials, overwrite_filesystem);
}

}  // namespace slacktier
