#include "platforms/io_uring_probe.hpp"

#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include <fmt/format.h>

#include "platforms/proc_text.hpp"

namespace slacktier {
namespace {

// io_uring came with Linux 5.1.
bool too_old(const std::string& kernel) {
  const auto major = leading_number(kernel);
  if (!major) return false;
  const auto dot = kernel.find('.');
  const auto minor = dot == std::string::npos ? std::nullopt : leading_number(kernel.substr(dot + 1));
  return *major < 5 || (*major == 5 && minor.value_or(0) < 1);
}

IoUringPolicy read_policy(const std::string& root) {
  IoUringPolicy policy;
  policy.kernel = read_line(root + "/proc/sys/kernel/osrelease").value_or("unknown");
  if (const auto text = read_line(root + "/proc/sys/kernel/io_uring_disabled")) {
    if (const auto value = leading_number(*text)) policy.disabled = static_cast<int>(*value);
  }
  if (const auto text = read_line(root + "/proc/sys/kernel/io_uring_group"))
    policy.group = std::strtol(text->c_str(), nullptr, 10);
  const auto seccomp = text_field(read_text(root + "/proc/self/status").value_or(""), "Seccomp");
  policy.seccomp = seccomp && *seccomp != "0";
  return policy;
}

}  // namespace

std::string explain_io_uring_refusal(int error, const IoUringPolicy& policy) {
  constexpr const char* container =
      "in a container, run it with a seccomp profile that allows io_uring_setup, io_uring_enter and "
      "io_uring_register, such as 'docker run --security-opt seccomp=unconfined'";
  if (error == ENOSYS) {
    if (too_old(policy.kernel)) return fmt::format("kernel {} has no io_uring: it needs Linux 5.1 or later", policy.kernel);
    if (policy.seccomp) return fmt::format("a seccomp filter hides io_uring from this process: {}", container);
    return fmt::format("kernel {} was built without io_uring, or a sandbox hides it", policy.kernel);
  }
  if (error == EPERM || error == EACCES) {
    if (policy.disabled == 2) {
      return "kernel.io_uring_disabled=2 refuses io_uring to all processes: 'sudo sysctl kernel.io_uring_disabled=0' allows "
             "it";
    }
    if (policy.disabled == 1) {
      const std::string group = policy.group && *policy.group >= 0
                                    ? fmt::format("members of group {}", *policy.group)
                                    : std::string("a group, which kernel.io_uring_group would name");
      return fmt::format(
          "kernel.io_uring_disabled=1 leaves io_uring to processes with CAP_SYS_ADMIN and {}: "
          "'sudo sysctl kernel.io_uring_disabled=0' allows it to all",
          group);
    }
    if (policy.seccomp) return fmt::format("a seccomp filter refuses io_uring to this process: {}", container);
    return "a security policy (seccomp, SELinux or AppArmor) refuses io_uring to this process: see the system's audit log";
  }
  if (error == ENOMEM) {
    return "io_uring_setup found no memory: kernels before 5.12 count rings against RLIMIT_MEMLOCK; raise it with 'ulimit "
           "-l'";
  }
  return fmt::format("io_uring_setup failed: {}", std::generic_category().message(error));
}

IoUringSupport probe_io_uring(const std::string& root) {
  io_uring_params params{};
  const long ring = ::syscall(SYS_io_uring_setup, 4, &params);
  if (ring < 0) return {false, explain_io_uring_refusal(errno, read_policy(root))};
  ::close(static_cast<int>(ring));
  return {true, {}};
}

}  // namespace slacktier
