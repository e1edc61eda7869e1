#include "platforms/filesystem.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <filesystem>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::message_of;
using slacktier::test::ProcTree;

TEST_CASE("The mount of a path is the longest that holds it, the last of equals", "[filesystem]") {
  constexpr const char* mounts =
      "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
      "22 27 0:21 / /data rw - xfs /dev/nvme0n1p1 rw\n"
      "30 27 0:30 / /data/my\\040disk\\134x rw shared:2 master:1 - btrfs /dev/sd\\040b rw\n"
      "31 27 0:31 / /data rw - tmpfs tmpfs rw\n"
      "torn line\n"
      "32 27 0:32 / /torn rw -\n"
      "33 27 0:33 / /database rw - nfs4 server:/x rw";
  const auto type = [&](const char* path) { return find_mount(mounts, path).value_or(Mount{}).type; };
  CHECK(type("/") == "ext4");
  CHECK(type("/srv/x") == "ext4");
  CHECK(type("/data") == "tmpfs");
  CHECK(type("/data/file") == "tmpfs");
  CHECK(type("/database/file") == "nfs4");
  CHECK(type("/databases") == "ext4");
  CHECK(type("/torn/x") == "ext4");
  const Mount mount = find_mount(mounts, "/data/my disk\\x/file").value_or(Mount{});
  CHECK(mount.type == "btrfs");
  CHECK(mount.point == "/data/my disk\\x");
  CHECK(mount.source == "/dev/sd b");
  CHECK(mount.options == "rw");
  CHECK(find_mount(mounts, "/srv/x").value_or(Mount{}).options == "rw,relatime");
  CHECK_FALSE(find_mount("", "/"));
}

TEST_CASE("Facts of a path are those of its nearest parent that exists", "[filesystem]") {
  const ProcTree tree;
  const std::string real = std::filesystem::canonical(tree.root()).string();
  for (const std::string& path : {tree.root(), tree.root() + "/not/yet/there", tree.root() + "/"}) {
    const PathFacts facts = read_path_facts(path);
    CHECK(facts.path == real);
    CHECK_FALSE(facts.block_device);
    CHECK_FALSE(facts.mount.type.empty());
    CHECK(real.find(facts.mount.point) == 0);
    struct statvfs space {};
    REQUIRE(::statvfs(real.c_str(), &space) == 0);
    CHECK(facts.free_bytes <= static_cast<std::uint64_t>(space.f_blocks) * space.f_frsize);
    CHECK(facts.memory_align.has_value() == facts.offset_align.has_value());
  }
  CHECK(read_path_facts("/proc/self").mount.type == "proc");
  CHECK_THROWS_AS(read_path_facts(""), UsageError);
}

TEST_CASE("The direct I/O probe answers and leaves nothing behind", "[filesystem]") {
  const ProcTree tree;
  tree.write("/file", "content");
  for (const std::string& path : {tree.root(), tree.root() + "/file", tree.root() + "/missing"}) {
    const DirectIo direct = probe_direct_io(path);
    INFO(direct.reason);
    CHECK(direct.works == direct.reason.empty());
    CHECK(direct.works == (direct.block >= 4096));
  }
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(tree.root())) ++entries;
  CHECK(entries == 1);
}

TEST_CASE("Where no scratch file can be made, the probe says so", "[filesystem]") {
  const DirectIo direct = probe_direct_io("/proc");
  CHECK_FALSE(direct.works);
  CHECK(direct.reason.find("scratch file") != std::string::npos);
  CHECK(direct.reason.find("(proc on /proc)") != std::string::npos);
}
