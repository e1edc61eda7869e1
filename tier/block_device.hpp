// What must be known of a block device before a byte of it is written: that it is the one that was meant, and that nothing
// uses it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace slacktier {

// Where the kernel tells what devices are and who uses them. Tests bring their own.
struct DeviceRecords {
  std::string sysfs = "/sys";  // a folder with dev/block, whose entries lead to the devices' folders
  std::string mounts;          // text in the form of /proc/self/mountinfo
  std::string swaps;           // text in the form of /proc/swaps
  static DeviceRecords current();
};

// Serial number of the disk that `number` is, or is a partition of: its sysfs `serial`, `device/serial`, or the SCSI
// page 80. Empty when it has none.
std::string device_serial(const DeviceRecords& records, dev_t number);

// Who uses the device, one of its partitions, or the disk that it is a partition of: mounts, swap, holders (device mapper,
// RAID). Each entry names the part and the use; empty when nothing does.
std::vector<std::string> device_uses(const DeviceRecords& records, dev_t number);

// File systems, volume managers, swap and partition tables that libblkid finds on a device or file. Throws
// std::system_error when it cannot be read.
std::vector<std::string> disk_signatures(const std::string& path);

// Erases what disk_signatures finds; `descriptor` is open for writing. Throws std::system_error.
void wipe_signatures(int descriptor, const std::string& path);

// Throws UsageError unless the device's serial is among `serials`, nothing uses it, and it carries no signature or
// `overwrite_filesystem` is set (which never overrides a use).
void require_free_device(const DeviceRecords& records, const std::string& path, dev_t number,
                         const std::vector<std::string>& serials, bool overwrite_filesystem);

// require_free_device with the system's own records when `path` is a block device; nothing for files and missing ones.
void guard_device(const std::string& path, const std::vector<std::string>& serials, bool overwrite_filesystem);

}  // namespace slacktier
