// Needs a tmpfs at /dev/shm, so these cases may skip.
#include <unistd.h>

#include "platforms/filesystem.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("tmpfs has no direct I/O, whether it refuses the flag or ignores it", "[filesystem_tmpfs]") {
  if (::access("/dev/shm", W_OK) != 0) return skip_test("no writable /dev/shm");
  if (read_path_facts("/dev/shm").mount.type != "tmpfs") return skip_test("/dev/shm is no tmpfs");
  const DirectIo direct = probe_direct_io("/dev/shm");
  INFO(direct.reason);
  CHECK_FALSE(direct.works);
  CHECK(direct.reason.find("tmpfs on /dev/shm") != std::string::npos);
}
