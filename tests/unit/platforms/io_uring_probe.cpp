#include "platforms/io_uring_probe.hpp"

#include <cerrno>

#include "tests/catch.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;

namespace {

bool says(int error, const IoUringPolicy& policy, const std::string& words) {
  const std::string reason = explain_io_uring_refusal(error, policy);
  INFO(reason);
  CHECK(reason.find(words) != std::string::npos);
  return reason.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("Each refusal of io_uring names who refuses and what helps", "[io_uring_probe]") {
  CHECK(says(ENOSYS, {"4.19.0-26-amd64", {}, {}, false}, "kernel 4.19.0-26-amd64 has no io_uring: it needs Linux 5.1"));
  CHECK(says(ENOSYS, {"5.0.1", {}, {}, true}, "needs Linux 5.1"));
  CHECK(says(ENOSYS, {"6.1.0", {}, {}, false}, "built without io_uring"));
  CHECK(says(ENOSYS, {"6.1.0", {}, {}, true}, "seccomp"));
  CHECK(says(EPERM, {"6.8.0", 2, {}, true}, "kernel.io_uring_disabled=2"));
  CHECK(says(EPERM, {"6.8.0", 2, {}, true}, "sudo sysctl kernel.io_uring_disabled=0"));
  CHECK(says(EPERM, {"6.8.0", 1, 1001, false}, "members of group 1001"));
  CHECK(says(EPERM, {"6.8.0", 1, -1, false}, "kernel.io_uring_group"));
  CHECK(says(EPERM, {"6.8.0", 0, {}, true}, "--security-opt seccomp=unconfined"));
  CHECK(says(EPERM, {"6.1.0", {}, {}, true}, "seccomp filter refuses"));
  CHECK(says(EACCES, {"6.1.0", {}, {}, false}, "SELinux"));
  CHECK(says(ENOMEM, {"5.10.0", {}, {}, false}, "ulimit -l"));
  CHECK(says(EMFILE, {"6.1.0", {}, {}, false}, "Too many open files"));
}

TEST_CASE("The probe gives a verdict here: usable, or a reason", "[io_uring_probe]") {
  const IoUringSupport support = probe_io_uring();
  INFO(support.reason);
  CHECK(support.usable == support.reason.empty());
}
