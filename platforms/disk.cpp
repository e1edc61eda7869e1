#include "platforms/disk.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "platforms/proc_text.hpp"

namespace slacktier {
namespace fs = std::filesystem;
namespace {

std::string line(const fs::path& file) { return read_line(file.string()).value_or(""); }

std::optional<std::uint64_t> number(const fs::path& file) {
  const auto text = read_line(file.string());
  return text ? leading_number(*text) : std::nullopt;
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) found.push_back(at->path());
  std::sort(found.begin(), found.end());
  return found;
}

std::string attachment_of(const std::string& name) {
  constexpr std::pair<std::string_view, const char*> kinds[] = {
      {"nvme", "nvme"}, {"sd", "scsi"},   {"vd", "virtio"}, {"xvd", "xen"}, {"loop", "loop"},        {"mmcblk", "mmc"},
      {"nbd", "nbd"},   {"pmem", "pmem"}, {"zram", "zram"}, {"md", "raid"}, {"dm-", "device mapper"}};
  for (const auto& [prefix, kind] : kinds)
    if (name.compare(0, prefix.size(), prefix) == 0) return kind;
  return {};
}

// The serial number of a SCSI disk: a binary page of four bytes of header and the text.
std::string scsi_serial(const fs::path& folder) {
  const auto page = read_text((folder / "device/vpd_pg80").string());
  return page && page->size() > 4 ? std::string(trimmed(std::string_view(*page).substr(4))) : std::string();
}

// "none" of "[none] mq-deadline"; disks without a choice have the word alone.
std::string chosen(const std::string& text) {
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return text;
  return text.substr(open + 1, close - open - 1);
}

// The folders from the disk's own up to the root of the tree; of an NVMe disk with several paths, which hangs below no
// controller, those above its first controller.
std::vector<fs::path> ancestors(const fs::path& disk, const fs::path& top) {
  fs::path from = disk;
  if (disk.string().find("/nvme-subsystem/") != std::string::npos)
    for (const fs::path& entry : entries(disk.parent_path())) {
      const std::string name = entry.filename().string();
      const bool controller =
          name.size() > 4 && name.compare(0, 4, "nvme") == 0 && name.find_first_not_of("0123456789", 4) == std::string::npos;
      std::error_code error;
      const fs::path real = fs::canonical(entry, error);
      if (!controller || error) continue;
      from = real;
      break;
    }
  std::vector<fs::path> folders;
  for (fs::path at = from; at != top && at.has_relative_path(); at = at.parent_path()) folders.push_back(at);
  return folders;
}

std::optional<PcieLink> pcie_link(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders) {
    if (!fs::exists(folder / "current_link_speed")) continue;
    PcieLink link;
    link.address = folder.filename().string();
    link.speed = line(folder / "current_link_speed");
    link.max_speed = line(folder / "max_link_speed");
    link.width = number(folder / "current_link_width");
    link.max_width = number(folder / "max_link_width");
    // What virtual machines say of devices that have no link.
    if (link.speed.rfind("Unknown", 0) == 0 || link.width.value_or(0) == 0) return std::nullopt;
    return link;
  }
  return std::nullopt;
}

// The first sensor of the disk or of its controller, in thousandths of a degree.
std::optional<double> temperature(const fs::path& disk, const std::vector<fs::path>& folders) {
  std::vector<fs::path> places = {disk / "device", disk / "device/hwmon"};
  if (!folders.empty() && folders.front() != disk) places.push_back(folders.front());
  for (const fs::path& place : places)
    for (const fs::path& entry : entries(place)) {
      if (entry.filename().string().compare(0, 5, "hwmon") != 0) continue;
      const std::string text = line(entry / "temp1_input");
      char* end = nullptr;
      const double thousandths = std::strtod(text.c_str(), &end);
      if (end != text.c_str()) return thousandths / 1000;
    }
  return std::nullopt;
}

void read_whole_disk(const fs::path& disk, const fs::path& top, DiskFacts& facts) {
  facts.name = disk.filename().string();
  facts.number = line(disk / "dev");
  facts.attachment = attachment_of(facts.name);
  const std::string vendor = line(disk / "device/vendor"), model = line(disk / "device/model");
  // Only SCSI's vendor is a name; that of others is a number.
  facts.model = vendor.empty() || vendor.compare(0, 2, "0x") == 0 || model.empty() ? model : vendor + " " + model;
  for (const char* file : {"serial", "device/serial"})
    if (facts.serial.empty()) facts.serial = line(disk / file);
  if (facts.serial.empty()) facts.serial = scsi_serial(disk);
  for (const char* file : {"device/firmware_rev", "device/rev"})
    if (facts.firmware.empty()) facts.firmware = line(disk / file);
  for (const char* file : {"wwid", "device/wwid"})
    if (facts.wwid.empty()) facts.wwid = line(disk / file);
  facts.bytes = 512 * number(disk / "size").value_or(0);
  facts.nvme_namespace = number(disk / "nsid");
  facts.logical_block = number(disk / "queue/logical_block_size");
  facts.physical_block = number(disk / "queue/physical_block_size");
  if (const auto rotational = number(disk / "queue/rotational")) facts.rotational = *rotational != 0;
  facts.scheduler = chosen(line(disk / "queue/scheduler"));
  facts.nomerges = number(disk / "queue/nomerges");
  facts.queue_requests = number(disk / "queue/nr_requests");
  if (const auto kib = number(disk / "queue/read_ahead_kb")) facts.read_ahead_bytes = *kib * 1024;
  facts.write_cache = line(disk / "queue/write_cache");
  facts.io_poll = number(disk / "queue/io_poll");
  const std::vector<fs::path> folders = ancestors(disk, top);
  facts.pcie = pcie_link(folders);
  facts.temperature_c = temperature(disk, folders);
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "numa_node")) {
      facts.numa_node = number(folder / "numa_node");  // none for -1: the system has no nodes
      break;
    }
}

// From a device down to the disk it lies on.
void descend(fs::path folder, const fs::path& top, DiskFacts& facts) {
  if (fs::exists(folder / "partition")) {
    facts.partition = folder.filename().string();
    if (const auto sectors = number(folder / "start")) facts.partition_start = *sectors * 512;
    folder = folder.parent_path();
  }
  const std::vector<fs::path> below = entries(folder / "slaves");
  if (below.empty() || facts.through.size() > 8) return read_whole_disk(folder, top, facts);
  facts.through.push_back(folder.filename().string());
  facts.partition.clear();
  if (below.size() > 1 && facts.members.empty())
    for (const fs::path& member : below) facts.members.push_back(member.filename().string());
  std::error_code error;
  const fs::path next = fs::canonical(below.front(), error);
  if (!error) descend(next, top, facts);
}

}  // namespace

DiskFacts read_disk_facts(dev_t device, const std::string& root) {
  DiskFacts facts;
  std::error_code error;
  const fs::path folder = fs::canonical(fmt::format("{}/sys/dev/block/{}:{}", root, major(device), minor(device)), error);
  if (error) return facts;
  const fs::path top = root.empty() ? fs::path("/sys/devices") : fs::canonical(root, error);
  descend(folder, top, facts);
  return facts;
}

}  // namespace slacktier
