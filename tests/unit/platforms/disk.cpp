#include "platforms/disk.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <filesystem>

#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::ProcTree;
namespace fs = std::filesystem;

namespace {

// A link in the tree, as sysfs has them everywhere.
void link(const ProcTree& tree, const std::string& path, const std::string& target) {
  const fs::path at = tree.root() + path;
  fs::create_directories(at.parent_path());
  fs::create_symlink(tree.root() + target, at);
}

const std::string pci = "/sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";

void write_queue(const ProcTree& tree, const std::string& disk) {
  tree.write(disk + "/queue/logical_block_size", "512\n");
  tree.write(disk + "/queue/physical_block_size", "4096\n");
  tree.write(disk + "/queue/rotational", "0\n");
  tree.write(disk + "/queue/scheduler", "[none] mq-deadline kyber\n");
  tree.write(disk + "/queue/nomerges", "2\n");
  tree.write(disk + "/queue/nr_requests", "1023\n");
  tree.write(disk + "/queue/read_ahead_kb", "128\n");
  tree.write(disk + "/queue/write_cache", "write back\n");
  tree.write(disk + "/queue/io_poll", "1\n");
  tree.write(disk + "/dev", "259:0\n");
  tree.write(disk + "/size", "15002931888\n");
}

void write_nvme(const ProcTree& tree) {
  const std::string controller = pci + "/nvme/nvme0", disk = controller + "/nvme0n1";
  tree.write(controller + "/model", "SAMSUNG MZQL27T6HBLA-00A07              \n");
  tree.write(controller + "/serial", "S6CKNE0T900123      \n");
  tree.write(controller + "/firmware_rev", "GDC5902Q\n");
  tree.write(controller + "/hwmon3/temp1_input", "41850\n");
  write_queue(tree, disk);
  tree.write(disk + "/nsid", "1\n");
  tree.write(disk + "/wwid", "eui.36434b3054900123002538a300000001\n");
  tree.write(disk + "/nvme0n1p2/partition", "2\n");
  tree.write(disk + "/nvme0n1p2/start", "2048\n");
  link(tree, disk + "/device", controller);
  tree.write(pci + "/current_link_speed", "16.0 GT/s PCIe\n");
  tree.write(pci + "/current_link_width", "2\n");
  tree.write(pci + "/max_link_speed", "16.0 GT/s PCIe\n");
  tree.write(pci + "/max_link_width", "4\n");
  tree.write(pci + "/numa_node", "1\n");
  link(tree, "/sys/dev/block/259:0", disk);
  link(tree, "/sys/dev/block/259:2", disk + "/nvme0n1p2");
}

}  // namespace

TEST_CASE("An NVMe disk: identity, format, link, temperature and queue", "[disk]") {
  const ProcTree tree;
  write_nvme(tree);
  const DiskFacts disk = read_disk_facts(makedev(259, 0), tree.root());
  CHECK(disk.name == "nvme0n1");
  CHECK(disk.partition.empty());
  CHECK(disk.attachment == "nvme");
  CHECK(disk.model == "SAMSUNG MZQL27T6HBLA-00A07");
  CHECK(disk.serial == "S6CKNE0T900123");
  CHECK(disk.firmware == "GDC5902Q");
  CHECK(disk.wwid == "eui.36434b3054900123002538a300000001");
  CHECK(disk.bytes == 7'681'501'126'656);
  CHECK(disk.nvme_namespace == 1);
  CHECK(disk.logical_block == 512);
  CHECK(disk.physical_block == 4096);
  CHECK(disk.rotational == false);
  CHECK(disk.scheduler == "none");
  CHECK(disk.nomerges == 2);
  CHECK(disk.queue_requests == 1023);
  CHECK(disk.read_ahead_bytes == 131072);
  CHECK(disk.write_cache == "write back");
  CHECK(disk.io_poll == 1);
  CHECK(disk.number == "259:0");
  CHECK_FALSE(disk.partition_start);
  CHECK(disk.numa_node == 1);
  CHECK(disk.temperature_c == Approx(41.85));
  REQUIRE(disk.pcie);
  CHECK(disk.pcie->address == "0000:41:00.0");
  CHECK(disk.pcie->speed == "16.0 GT/s PCIe");
  CHECK(disk.pcie->width == 2);
  CHECK(disk.pcie->max_width == 4);

  const DiskFacts part = read_disk_facts(makedev(259, 2), tree.root());
  CHECK(part.partition == "nvme0n1p2");
  CHECK(part.partition_start == 1 << 20);
  CHECK(part.name == "nvme0n1");
  CHECK(part.serial == "S6CKNE0T900123");
}

TEST_CASE("An NVMe disk with several paths is below a subsystem: link and temperature are its first controller's",
          "[disk]") {
  const ProcTree tree;
  write_nvme(tree);
  const std::string subsystem = "/sys/devices/virtual/nvme-subsystem/nvme-subsys0", disk = subsystem + "/nvme1n1";
  write_queue(tree, disk);
  tree.write(subsystem + "/model", "Shared disk\n");
  tree.write(subsystem + "/serial", "M1\n");
  link(tree, disk + "/device", subsystem);
  link(tree, subsystem + "/nvme0", pci + "/nvme/nvme0");
  link(tree, "/sys/dev/block/259:9", disk);
  const DiskFacts facts = read_disk_facts(makedev(259, 9), tree.root());
  CHECK(facts.model == "Shared disk");
  CHECK(facts.serial == "M1");
  REQUIRE(facts.pcie);
  CHECK(facts.pcie->address == "0000:41:00.0");
  CHECK(facts.temperature_c == Approx(41.85));
  CHECK(facts.numa_node == 1);
}

TEST_CASE("A SCSI disk has a vendor, a revision and a serial number in a page of its own", "[disk]") {
  const ProcTree tree;
  const std::string disk = "/sys/devices/pci0000:00/ata1/host0/0:0:0:0/block/sda";
  write_queue(tree, disk);
  tree.write(disk + "/queue/scheduler", "none [mq-deadline]\n");
  tree.write(disk + "/device/vendor", "ATA     \n");
  tree.write(disk + "/device/model", "Micron_5300\n");
  tree.write(disk + "/device/rev", "U001\n");
  tree.write(disk + "/device/vpd_pg80", std::string("\0\x80\0\x0C", 4) + "  20382A3F01");
  tree.write(disk + "/device/hwmon/hwmon0/temp1_input", "33000\n");
  link(tree, "/sys/dev/block/8:0", disk);
  const DiskFacts facts = read_disk_facts(makedev(8, 0), tree.root());
  CHECK(facts.attachment == "scsi");
  CHECK(facts.model == "ATA Micron_5300");
  CHECK(facts.firmware == "U001");
  CHECK(facts.serial == "20382A3F01");
  CHECK(facts.scheduler == "mq-deadline");
  CHECK(facts.temperature_c == Approx(33));
  CHECK_FALSE(facts.pcie);
  CHECK_FALSE(facts.numa_node);
  CHECK_FALSE(facts.nvme_namespace);
}

TEST_CASE("Below device mapper and RAID lie disks: the way down is told, the facts are the first's", "[disk]") {
  const ProcTree tree;
  write_nvme(tree);
  const std::string mapper = "/sys/devices/virtual/block/dm-0", raid = "/sys/devices/virtual/block/md0";
  tree.write(mapper + "/size", "100\n");
  tree.write(raid + "/size", "200\n");
  link(tree, mapper + "/slaves/md0", raid);
  link(tree, raid + "/slaves/nvme0n1p2", pci + "/nvme/nvme0/nvme0n1/nvme0n1p2");
  tree.write("/sys/devices/virtual/block/vdz/size", "300\n");
  link(tree, raid + "/slaves/vdz", "/sys/devices/virtual/block/vdz");
  link(tree, "/sys/dev/block/253:0", mapper);
  const DiskFacts facts = read_disk_facts(makedev(253, 0), tree.root());
  CHECK(facts.through == std::vector<std::string>{"dm-0", "md0"});
  CHECK(facts.members == std::vector<std::string>{"nvme0n1p2", "vdz"});
  CHECK(facts.name == "nvme0n1");
  CHECK(facts.partition == "nvme0n1p2");
  CHECK(facts.firmware == "GDC5902Q");
}

TEST_CASE("What sysfs does not tell stays empty", "[disk]") {
  const ProcTree tree;
  CHECK(read_disk_facts(makedev(1, 1), tree.root()).name.empty());
  tree.write("/sys/devices/pci0000:00/0000:00:05.0/virtio3/block/vda/size", "8\n");
  tree.write("/sys/devices/pci0000:00/0000:00:05.0/current_link_speed", "Unknown\n");
  tree.write("/sys/devices/pci0000:00/0000:00:05.0/numa_node", "-1\n");
  tree.write("/sys/devices/pci0000:00/0000:00:05.0/virtio3/vendor", "0x1af4\n");
  link(tree, "/sys/devices/pci0000:00/0000:00:05.0/virtio3/block/vda/device",
       "/sys/devices/pci0000:00/0000:00:05.0/virtio3");
  link(tree, "/sys/dev/block/254:0", "/sys/devices/pci0000:00/0000:00:05.0/virtio3/block/vda");
  const DiskFacts facts = read_disk_facts(makedev(254, 0), tree.root());
  CHECK(facts.name == "vda");
  CHECK(facts.attachment == "virtio");
  CHECK(facts.bytes == 4096);
  CHECK(facts.model.empty());
  CHECK(facts.serial.empty());
  CHECK_FALSE(facts.pcie);
  CHECK_FALSE(facts.numa_node);
  CHECK_FALSE(facts.temperature_c);
  CHECK_FALSE(facts.rotational);
}
