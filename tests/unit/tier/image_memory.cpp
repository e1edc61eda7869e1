// Images on a file system in memory, which has no direct I/O.
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/image.hpp"

using namespace slacktier;

TEST_CASE("staging without direct I/O works and says so", "[image_memory]") {
  struct statfs system {};
  if (::statfs("/dev/shm", &system) != 0 || system.f_type != TMPFS_MAGIC || ::access("/dev/shm", W_OK) != 0) {
    return skip_test("/dev/shm is no writable tmpfs");
  }
  const test::Scratch memory("/dev/shm"), scratch;
  const TableSpec spec = test::small_engram(scratch, 500);
  StageOptions options;
  options.disks = {memory.file("a.img")};
  const StageReport report = stage_image(spec, options);
  CHECK_FALSE(report.direct);
  CHECK(report.buffered == options.disks);
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);
}
