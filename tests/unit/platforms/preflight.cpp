#include "platforms/preflight.hpp"

#include <algorithm>
#include <cstdint>

#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::ProcTree;

namespace {

// A file on a disk with which nothing is wrong, and a host alike.
StorageFacts sound() {
  StorageFacts storage;
  storage.path.path = "/data/image";
  storage.path.mount = {"/data", "xfs", "/dev/nvme0n1", "rw"};
  storage.path.free_bytes = std::uint64_t{1} << 40;
  storage.disk.name = "nvme0n1";
  storage.disk.attachment = "nvme";
  storage.disk.rotational = false;
  storage.disk.scheduler = "none";
  storage.disk.temperature_c = 45;
  storage.disk.pcie = PcieLink{"0000:41:00.0", "16.0 GT/s PCIe", "16.0 GT/s PCIe", 4, 4};
  storage.direct = {true, 4096, {}};
  storage.extents = FileExtents{1 << 30, 4, 0, 0, 0};
  return storage;
}

HostFacts sound_host() {
  HostFacts host;
  host.memory_total = std::uint64_t{64} << 30;
  return host;
}

const IoUringSupport allowed{true, {}};

std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const auto& finding : findings) all.push_back(finding.code);
  return all;
}

}  // namespace

TEST_CASE("A sound disk and host: nothing is found", "[preflight]") {
  CHECK(codes(preflight(sound(), sound_host(), allowed)).empty());
}

TEST_CASE("Each thing that spoils a measurement is found alone, with values, reason and fix", "[preflight]") {
  struct Case {
    const char* code;
    std::vector<const char*> parts;
    void (*spoil)(StorageFacts&, HostFacts&, IoUringSupport&);
  };
  const std::vector<Case> cases = {
      {"image_holes",
       {"512 MiB of 1", "holes", "stage the image again"},
       [](auto& s, auto&, auto&) { s.extents->holes = 1 << 29; }},
      {"image_unwritten", {"never written", "stage"}, [](auto& s, auto&, auto&) { s.extents->unwritten = 4096; }},
      {"image_encoded", {"compressed"}, [](auto& s, auto&, auto&) { s.extents->encoded = 4096; }},
      {"direct_io_off",
       {"/data/image", "because", "page cache"},
       [](auto& s, auto&, auto&) {
         s.direct = {false, 0, "because"};
       }},
      {"zero_pages", {"50% of the pages", "trimmed", "stage"}, [](auto& s, auto&, auto&) { s.zero_share = 0.5; }},
      {"direct_io_coarse",
       {"multiples of 16384", "--page-bytes 16384"},
       [](auto& s, auto&, auto&) { s.path.offset_align = 16384; }},
      {"sectors_large", {"65536 B", "--page-bytes 65536"}, [](auto& s, auto&, auto&) { s.disk.logical_block = 65536; }},
      {"partition_misaligned",
       {"byte 32256", "nvme0n1p1", "1 MiB"},
       [](auto& s, auto&, auto&) {
         s.disk.partition = "nvme0n1p1";
         s.disk.partition_start = 63 * 512;
       }},
      {"numa_remote",
       {"node 1, this process runs on 0, 2", "--cpunodebind=1"},
       [](auto& s, auto& h, auto&) {
         s.disk.numa_node = 1;
         h.nodes_allowed = {0, 2};
       }},
      {"io_capped",
       {"riops=5000", "io.max"},
       [](auto& s, auto& h, auto&) {
         s.disk.number = "259:0";
         h.cgroup_io_limits = {"8:0 riops=1", "259:0 riops=5000"};
       }},
      {"cpu_capped",
       {"1.5 of 4 CPUs"},
       [](auto&, auto& h, auto&) {
         h.cores = 4;
         h.cgroup_cpus = 1.5;
       }},
      {"disk_merges", {"nomerges is 0", "echo 2 >"}, [](auto& s, auto&, auto&) { s.disk.nomerges = 0; }},
      {"disk_write_back", {"write cache is on"}, [](auto& s, auto&, auto&) { s.disk.write_cache = "write back"; }},
      {"space_low", {"free"}, [](auto& s, auto&, auto&) { s.path.free_bytes = 1 << 20; }},
      {"disk_unknown", {"no disk of this host", "xfs"}, [](auto& s, auto&, auto&) { s.disk = {}; }},
      {"pcie_link_slow",
       {"8.0 GT/s PCIe x4 of 16.0 GT/s PCIe x4", "0000:41:00.0"},
       [](auto& s, auto&, auto&) { s.disk.pcie->speed = "8.0 GT/s PCIe"; }},
      {"pcie_link_slow", {"x2 of"}, [](auto& s, auto&, auto&) { s.disk.pcie->width = 2; }},
      {"disk_hot", {"77 degrees"}, [](auto& s, auto&, auto&) { s.disk.temperature_c = 77; }},
      {"disk_virtual",
       {"virtio"},
       [](auto& s, auto&, auto&) {
         s.disk.attachment = "virtio";
         s.disk.rotational = true;
       }},
      {"disk_rotational", {"rotating"}, [](auto& s, auto&, auto&) { s.disk.rotational = true; }},
      {"disk_scheduler",
       {"bfq", "echo none > /sys/block/nvme0n1/queue/scheduler"},
       [](auto& s, auto&, auto&) { s.disk.scheduler = "bfq"; }},
      {"io_uring_refused",
       {"a reason", "pread"},
       [](auto&, auto&, auto& io) {
         io = {false, "a reason"};
       }},
      {"memlock_low", {"8.0 MiB", "LimitMEMLOCK"}, [](auto&, auto& h, auto&) { h.memlock_hard = 8 << 20; }},
      {"memory_capped",
       {"memory.max", "4.0 GiB of 64.0 GiB"},
       [](auto&, auto& h, auto&) { h.cgroup_memory_limit = std::uint64_t{4} << 30; }},
      {"memory_capped", {"memory.high"}, [](auto&, auto& h, auto&) { h.cgroup_memory_high = std::uint64_t{4} << 30; }},
  };
  for (const auto& [code, parts, spoil] : cases) {
    StorageFacts storage = sound();
    HostFacts host = sound_host();
    IoUringSupport io_uring = allowed;
    spoil(storage, host, io_uring);
    const auto findings = preflight(storage, host, io_uring);
    INFO(code);
    REQUIRE(codes(findings) == std::vector<std::string>{code});
    CHECK_FALSE(findings[0].why.empty());
    for (const char* part : parts) CHECK_THAT(findings[0].text(), contains_text(part));
  }
}

TEST_CASE("What is no limit is no finding", "[preflight]") {
  StorageFacts storage = sound();
  HostFacts host = sound_host();
  host.memlock_hard = 8 << 20;
  host.memlock_exempt = true;
  host.cgroup_memory_limit = host.memory_total;
  storage.extents.reset();
  storage.disk.temperature_c.reset();
  storage.disk.pcie.reset();
  storage.disk.scheduler.clear();
  storage.path.block_device = true;
  storage.path.free_bytes = 0;
  CHECK(codes(preflight(storage, host, allowed)).empty());
}

TEST_CASE("The facts of a path of this machine", "[preflight]") {
  const ProcTree tree;
  tree.write("/file", std::string(10'000, 'x'));
  const StorageFacts file = read_storage_facts(tree.root() + "/file");
  CHECK(file.path.path.find("/file") != std::string::npos);
  CHECK_FALSE(file.path.mount.options.empty());
  if (file.extents) CHECK(file.extents->bytes == 10'000);
  CHECK(file.direct.works == file.direct.reason.empty());
  const StorageFacts folder = read_storage_facts(tree.root());
  CHECK_FALSE(folder.extents);
  CHECK(folder.disk.name == file.disk.name);
  // proc lies on no disk and takes no direct I/O.
  const auto findings = codes(preflight("/proc/self/status"));
  CHECK(std::count(findings.begin(), findings.end(), "direct_io_off") == 1);
  CHECK(std::count(findings.begin(), findings.end(), "disk_unknown") == 1);
}

TEST_CASE("Zero pages are found by reading some", "[preflight]") {
  const ProcTree tree;
  tree.write("/file", std::string(1 << 20, 'x') + std::string(1 << 20, '\0'));
  const std::string file = tree.root() + "/file";
  CHECK(sample_zeros(file, 0, 1 << 20) == 0);
  CHECK(sample_zeros(file, 1 << 20, 2 << 20) == 1);
  CHECK(sample_zeros(file, 0, 2 << 20).value() > 0.2);
  CHECK_FALSE(sample_zeros(file, 4096, 8000));
  CHECK_FALSE(sample_zeros(file + "-absent", 0, 8192));
}
