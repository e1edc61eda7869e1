// Whether this process may use io_uring, and in words why not.
#pragma once

#include <optional>
#include <string>

namespace slacktier {

struct IoUringSupport {
  bool usable = false;
  std::string reason;  // empty when usable; else what refuses it and how to change that
};

// Sets a small ring up and closes it. `root` comes before /proc (see proc_text.hpp) for what explains a refusal.
IoUringSupport probe_io_uring(const std::string& root = "");

// What the system says about a refusal.
struct IoUringPolicy {
  std::string kernel;           // as uname -r prints it
  std::optional<int> disabled;  // sysctl kernel.io_uring_disabled
  std::optional<long> group;    // sysctl kernel.io_uring_group
  bool seccomp = false;         // a seccomp filter is on this process
};

// The reason for io_uring_setup having failed with `error` (an errno value) under `policy`.
std::string explain_io_uring_refusal(int error, const IoUringPolicy& policy);

}  // namespace slacktier
