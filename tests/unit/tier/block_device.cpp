#include "tier/block_device.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstring>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;
using test::Scratch;

namespace {

// A sysfs with an NVMe disk of two partitions, a SCSI disk, and a virtual one without a serial.
struct Machine {
  Scratch scratch;
  DeviceRecords records;
  const dev_t nvme = makedev(259, 0), first = makedev(259, 1), second = makedev(259, 2), scsi = makedev(8, 0),
              loop = makedev(7, 0);

  Machine() {
    device("nvme0n1", "259:0");
    scratch.write("devices/nvme0n1/device/serial", "S4EWNX0R123456      \n");
    device("nvme0n1/nvme0n1p1", "259:1");
    scratch.write("devices/nvme0n1/nvme0n1p1/partition", "1\n");
    device("nvme0n1/nvme0n1p2", "259:2");
    scratch.write("devices/nvme0n1/nvme0n1p2/partition", "2\n");
    device("sda", "8:0");
    scratch.write("devices/sda/device/vpd_pg80", std::string("\0\x80\0\x08"
                                                             "ZC1A0042",
                                                             12));
    device("loop0", "7:0");
    records.sysfs = scratch.file("");
    records.mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";
    records.swaps = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";
  }
  void device(const std::string& folder, const std::string& number) const {
    scratch.write("devices/" + folder + "/dev", number + "\n");
    std::filesystem::create_directories(scratch.file("devices/" + folder + "/holders"));
    std::filesystem::create_directories(scratch.file("dev/block"));
    std::filesystem::create_directory_symlink("../../devices/" + folder, scratch.file("dev/block/" + number));
  }
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("serials come from the disk, also for its partitions", "[block_device]") {
  const Machine m;
  CHECK(device_serial(m.records, m.nvme) == "S4EWNX0R123456");
  CHECK(device_serial(m.records, m.second) == "S4EWNX0R123456");
  CHECK(device_serial(m.records, m.scsi) == "ZC1A0042");
  CHECK(device_serial(m.records, m.loop).empty());
  CHECK_THROWS_WITH(device_serial(m.records, makedev(1, 2)), contains_text("1:2"));
}

TEST_CASE("mounts, swap and holders are uses of a device, its partitions and its disk", "[block_device]") {
  Machine m;
  for (const dev_t device : {m.nvme, m.first, m.second, m.scsi}) CHECK(device_uses(m.records, device).empty());
  m.records.mounts += "30 22 259:1 /sub /mnt/data rw,noatime - xfs /dev/nvme0n1p1 rw\n";
  CHECK(device_uses(m.records, m.nvme) == Texts{"nvme0n1p1 is mounted at /mnt/data"});
  CHECK(device_uses(m.records, m.first) == Texts{"nvme0n1p1 is mounted at /mnt/data"});
  CHECK(device_uses(m.records, m.second).empty());
  // btrfs: the number is not the device's, the source is.
  m.records.mounts += "31 22 0:45 / /mnt/pool rw shared:5 master:2 - btrfs /dev/nvme0n1p2 rw\n";
  CHECK(device_uses(m.records, m.second) == Texts{"nvme0n1p2 is mounted at /mnt/pool"});
  m.records.swaps += "/dev/sda                               partition\t1048572\t0\t-2\n";
  CHECK(device_uses(m.records, m.scsi) == Texts{"sda is in use as swap"});
  std::filesystem::create_directories(m.scratch.file("devices/nvme0n1/holders/dm-3"));
  CHECK(device_uses(m.records, m.second) == Texts{"nvme0n1p2 is mounted at /mnt/pool", "nvme0n1 is held by dm-3"});
  CHECK(device_uses(m.records, m.loop).empty());
}

TEST_CASE("signatures of file systems, swap and partition tables are found and can be wiped", "[block_device]") {
  const Scratch scratch;
  std::string blank(4 << 20, '\0');
  const auto with = [&blank](std::initializer_list<std::pair<std::size_t, std::string>> parts) {
    std::string image = blank;
    for (const auto& [at, bytes] : parts) image.replace(at, bytes.size(), bytes);
    return image;
  };
  CHECK(disk_signatures(scratch.write("blank", blank)).empty());
  CHECK_THROWS_AS(disk_signatures(scratch.file("none")), std::system_error);
  const std::string swap = scratch.write("swap", with({{4086, "SWAPSPACE2"}, {1024, std::string("\1\0\0\0\xff\3\0\0", 8)}}));
  CHECK(disk_signatures(swap) == Texts{"swap"});
  // An MBR with one Linux partition.
  const std::string entry("\0\0\2\0\x83\0\0\0\0\x08\0\0\0\x10\0\0", 16);
  const std::string mbr = scratch.write("mbr", with({{446, entry}, {510, "\x55\xaa"}}));
  CHECK(disk_signatures(mbr) == Texts{"dos partition table"});
  const std::string lvm = scratch.write("lvm", with({{512, "LABELONE"},
                                                     {512 + 24, "LVM2 001"},
                                                     {512 + 8, std::string("\1\0\0\0\0\0\0\0", 8)},
                                                     {512 + 20, std::string("\x20\0\0\0", 4)}}));
  CHECK_THAT(fmt::format("{}", fmt::join(disk_signatures(lvm), ",")), contains_text("LVM2"));

  const int descriptor = ::open(mbr.c_str(), O_RDWR);
  REQUIRE(descriptor >= 0);
  wipe_signatures(descriptor, mbr);
  ::close(descriptor);
  CHECK(disk_signatures(mbr).empty());
}

TEST_CASE("a device is free only when named, unused and unsigned", "[block_device]") {
  Machine m;
  const std::string node = m.scratch.write("node", std::string(4 << 20, '\0'));  // stands for the device's contents
  CHECK_NOTHROW(require_free_device(m.records, node, m.nvme, {"other", "S4EWNX0R123456"}, false));
  CHECK_THROWS_WITH(require_free_device(m.records, node, m.nvme, {}, false), contains_text("--serial S4EWNX0R123456"));
  CHECK_THROWS_WITH(require_free_device(m.records, node, m.nvme, {"S4EWNX0R12345"}, true),
                    contains_text("its serial is S4EWNX0R123456, not S4EWNX0R12345"));
  CHECK_THROWS_WITH(require_free_device(m.records, node, m.loop, {""}, true), contains_text("no serial number"));

  std::string swap(4 << 20, '\0');
  swap.replace(4086, 10, "SWAPSPACE2").replace(1024, 6, std::string("\1\0\0\0\xff\3", 6));
  m.scratch.write("node", swap);
  CHECK_THROWS_WITH(require_free_device(m.records, node, m.nvme, {"S4EWNX0R123456"}, false),
                    contains_text("carries swap") && contains_text("--overwrite-filesystem"));
  CHECK_NOTHROW(require_free_device(m.records, node, m.nvme, {"S4EWNX0R123456"}, true));
  // A use is never overridden.
  m.records.mounts += "30 22 259:1 / /mnt/data rw - xfs /dev/nvme0n1p1 rw\n";
  CHECK_THROWS_WITH(require_free_device(m.records, node, m.nvme, {"S4EWNX0R123456"}, true),
                    contains_text("nvme0n1p1 is mounted at /mnt/data"));
}
