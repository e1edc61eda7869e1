// What this host is, and what this process holds of its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "platforms/clock.hpp"

namespace slacktier {

// Nothing, or an empty string, stands for what the system does not tell. Sizes in bytes.
struct HostFacts {
  std::string hostname;
  std::string kernel;      // "6.1.0-18-amd64"
  std::string os_release;  // "Debian GNU/Linux 12 (bookworm)"
  std::string cpu_model;
  std::uint64_t cores = 0;  // CPUs that this process may run on
  std::uint64_t cores_online = 0;
  std::uint64_t numa_nodes = 0;  // at least 1
  std::uint64_t memory_total = 0;
  std::uint64_t memory_available = 0;
  std::string huge_pages;                            // transparent huge pages: "always", "madvise", "never"
  std::optional<std::uint64_t> cgroup_memory_limit;  // the tightest of this process's groups; nothing: no limit
  std::optional<std::uint64_t> cgroup_memory_high;   // above this its memory is reclaimed, page cache first; nothing: never
  std::optional<double> cgroup_cpus;                 // CPU time a second that its groups allow; nothing: no limit
  std::vector<std::string> cgroup_io_limits;         // lines of io.max: "259:0 rbps=max wbps=max riops=5000 wiops=max"
  std::vector<std::uint64_t> nodes_allowed;          // NUMA nodes with a CPU that this process may run on
  std::optional<std::uint64_t> memlock_soft;         // RLIMIT_MEMLOCK; nothing: unlimited
  std::optional<std::uint64_t> memlock_hard;
  bool memlock_exempt = false;           // the process has CAP_IPC_LOCK: the limit does not bind it
  std::optional<int> io_uring_disabled;  // the sysctl; kernels before 6.6 have none
};

// `root` comes before /proc, /sys and /etc (see proc_text.hpp).
HostFacts read_host_facts(const std::string& root = "");

// Host memory of this process, in bytes. Pages that are locked or pinned are resident as well, so the three do not add up:
// they say what part of `resident` cannot be reclaimed. (Memory that a driver allocated is in none of them.)
struct ProcessMemory {
  std::uint64_t resident = 0;  // VmRSS
  std::uint64_t peak = 0;      // VmHWM
  std::uint64_t locked = 0;    // VmLck: mlock
  std::uint64_t pinned = 0;    // VmPin: registered with io_uring, verbs or a GPU driver
};
ProcessMemory read_process_memory(const std::string& root = "");

// CPU time, in nanoseconds, of those threads of this process whose names begin with `prefix`; 0 when there are none.
Nanos thread_cpu_time(const std::string& prefix, const std::string& root = "");

// Leaves this process, and what it starts, only these CPUs; memory that it touches from then on comes from their nodes.
// Throws EnvironmentError naming those it may run on when the system refuses them.
void run_on_cpus(const std::vector<int>& cpus);
// The CPUs of a NUMA node. Throws EnvironmentError naming the nodes there are.
std::vector<int> cpus_of_node(int node, const std::string& root = "");

// Raises the soft RLIMIT_MEMLOCK to the hard one. Returns it (nothing: unlimited). Throws std::system_error.
std::optional<std::uint64_t> raise_memlock_limit();

// Throws EnvironmentError, with the limit and the commands that raise it, when locking `bytes` more for `purpose` (such as
// "registering 512 page buffers with io_uring") would pass RLIMIT_MEMLOCK.
void require_memlock(std::uint64_t bytes, const std::string& purpose, const std::string& root = "");

// Caps the memory of this process's control group, page cache included, at `bytes`: above it the kernel reclaims
// (memory.high), so that the page cache cannot hold what does not fit, and nothing is killed. For `command` (such as
// "slacktier-harness run"), which the message names. Throws EnvironmentError, with the systemd-run command that does it,
// where this process may not.
void limit_own_memory(std::uint64_t bytes, const std::string& command, const std::string& root = "");

}  // namespace slacktier
