// The disk behind a block device: what it is, how it is attached, and how the kernel drives it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace slacktier {

// Of the nearest PCI device above a disk, as the kernel writes it: "16.0 GT/s PCIe", lanes.
struct PcieLink {
  std::string address;  // "0000:41:00.0"
  std::string speed, max_speed;
  std::optional<std::uint64_t> width, max_width;
};

// Nothing, or an empty string, stands for what the system does not tell.
struct DiskFacts {
  std::string name;                              // of the whole disk: "nvme0n1"
  std::string number;                            // "259:0", as the kernel's control groups name it
  std::string partition;                         // "nvme0n1p2" when the device is a part of the disk
  std::optional<std::uint64_t> partition_start;  // bytes from the disk's start
  std::vector<std::string> through;              // devices between that and the path: device mapper, RAID; the topmost first
  std::vector<std::string> members;  // disks side by side below those, when there are several; the facts are the first's
  std::string attachment;            // "nvme", "scsi", "virtio", "xen", "loop", ...: from the disk's name
  std::string model, serial, firmware, wwid;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> nvme_namespace;
  std::optional<std::uint64_t> logical_block, physical_block;  // bytes: the format in use, and what the disk writes at once
  std::optional<bool> rotational;
  std::string scheduler;  // "none", "mq-deadline"
  std::optional<std::uint64_t> nomerges, queue_requests, read_ahead_bytes;
  std::string write_cache;               // "write back", "write through"
  std::optional<std::uint64_t> io_poll;  // 1: it has queues for polled completions
  std::optional<std::uint64_t> numa_node;
  std::optional<double> temperature_c;
  std::optional<PcieLink> pcie;
};

// Of a block device's number, or of one of its partitions. `root` comes before /sys (see proc_text.hpp). Where sysfs knows
// no such device, `name` is empty.
DiskFacts read_disk_facts(dev_t number, const std::string& root = "");

}  // namespace slacktier
