#include "platforms/host.hpp"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <thread>

#include "platforms/error.hpp"
#include "platforms/memory.hpp"
#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"
#include "tests/unit/platforms/proc_tree.hpp"

using namespace slacktier;
using slacktier::test::message_of;
using slacktier::test::ProcTree;

namespace {

void write_limits(const ProcTree& tree, const std::string& soft, const std::string& hard) {
  tree.write("/proc/self/limits",
             "Limit                     Soft Limit           Hard Limit           Units     \n"
             "Max open files            1024                 524288               files     \n"
             "Max locked memory         " +
                 soft + "              " + hard + "              bytes     \n");
}

}  // namespace

TEST_CASE("The memory of the own control group is capped where that is permitted; else the message says how", "[host]") {
  const ProcTree tree;
  tree.write("/proc/self/cgroup", "1:memory:/v1\n0::/user.slice/run.scope\n");
  const std::string group = "/sys/fs/cgroup/user.slice/run.scope";
  const auto limit = [&] { limit_own_memory(std::uint64_t{1} << 30, "slacktier-harness run", tree.root()); };
  CHECK_THROWS_AS(limit(), EnvironmentError);
  const std::string refusal = message_of(limit);
  CHECK(refusal.find(group + "/memory.high: No such file") != std::string::npos);
  CHECK(refusal.find("systemd-run --scope -p MemoryHigh=1073741824 slacktier-harness run") != std::string::npos);
  tree.write(group + "/memory.high", "max\n");
  CHECK_FALSE(read_host_facts(tree.root()).cgroup_memory_high);
  limit();
  CHECK(read_host_facts(tree.root()).cgroup_memory_high == std::uint64_t{1} << 30);
  CHECK_FALSE(read_host_facts(tree.root()).cgroup_memory_limit);
  const ProcTree none;
  CHECK(message_of([&] { limit_own_memory(1, "x", none.root()); }).find("in no control group") != std::string::npos);
}

TEST_CASE("Host facts are read from what the system tells", "[host]") {
  const ProcTree tree;
  tree.write("/proc/sys/kernel/hostname", "node7\n");
  tree.write("/proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  tree.write("/etc/os-release", "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\n");
  tree.write("/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum\nflags\t: fpu\n");
  tree.write("/sys/devices/system/cpu/online", "0-15,32-47\n");
  tree.write("/sys/devices/system/node/online", "0-1\n");
  tree.write("/proc/meminfo", "MemTotal:       24669216 kB\nMemFree:         1000 kB\nMemAvailable:   20000000 kB\n");
  tree.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  tree.write("/proc/self/status", "Name:\tx\nCapEff:\t0000000000004000\nCpus_allowed:\tf\nCpus_allowed_list:\t0-2,5\n");
  tree.write("/proc/sys/kernel/io_uring_disabled", "2\n");
  write_limits(tree, "8388608", "unlimited");
  const HostFacts facts = read_host_facts(tree.root());
  CHECK(facts.hostname == "node7");
  CHECK(facts.kernel == "6.1.0-18-amd64");
  CHECK(facts.os_release == "Debian GNU/Linux 12 (bookworm)");
  CHECK(facts.cpu_model == "Intel(R) Xeon(R) Platinum");
  CHECK(facts.cores_online == 32);
  CHECK(facts.cores == 4);
  CHECK(facts.numa_nodes == 2);
  CHECK(facts.memory_total == 24669216ULL * 1024);
  CHECK(facts.memory_available == 20000000ULL * 1024);
  CHECK(facts.huge_pages == "madvise");
  CHECK(facts.memlock_soft == 8388608);
  CHECK_FALSE(facts.memlock_hard);
  CHECK(facts.memlock_exempt);
  CHECK(facts.io_uring_disabled == 2);
  CHECK_FALSE(facts.cgroup_memory_limit);
}

TEST_CASE("A system that tells nothing yields empty facts", "[host]") {
  const ProcTree tree;
  const HostFacts facts = read_host_facts(tree.root());
  CHECK(facts.hostname.empty());
  CHECK(facts.cores == 0);
  CHECK(facts.numa_nodes == 1);
  CHECK(facts.memory_total == 0);
  CHECK_FALSE(facts.io_uring_disabled);
  CHECK_FALSE(facts.memlock_exempt);
}

TEST_CASE("Torn or foreign texts do no harm", "[host]") {
  const ProcTree tree;
  tree.write("/proc/meminfo", "MemTotal:");
  tree.write("/proc/self/limits", "Max locked memory");
  tree.write("/proc/self/cgroup", "0\n:\n::\n0::relative\n4:memory\n");
  tree.write("/sys/devices/system/cpu/online", "3-1");
  tree.write("/sys/kernel/mm/transparent_hugepage/enabled", "]always[");
  tree.write("/etc/os-release", "MY_PRETTY_NAME=no\nPRETTY_NAME=\"");
  tree.write("/proc/self/status", "CapEff:\tzz\n");
  const HostFacts facts = read_host_facts(tree.root());
  CHECK(facts.memory_total == 0);
  CHECK(facts.cores_online == 0);
  CHECK(facts.huge_pages.empty());
  CHECK(facts.os_release == "\"");
  CHECK_FALSE(facts.memlock_exempt);
  CHECK_FALSE(facts.cgroup_memory_limit);
}

TEST_CASE("Arm processors are named by implementer and part", "[host]") {
  const ProcTree tree;
  tree.write("/proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
  CHECK(read_host_facts(tree.root()).cpu_model == "Arm implementer 0x41 part 0xd4f");
}

TEST_CASE("The tightest cgroup limit counts, of version 2", "[host]") {
  const ProcTree tree;
  tree.write("/proc/self/cgroup", "0::/user.slice/job.scope\n");
  tree.write("/sys/fs/cgroup/user.slice/memory.max", "4294967296\n");
  tree.write("/sys/fs/cgroup/user.slice/job.scope/memory.max", "max\n");
  CHECK(read_host_facts(tree.root()).cgroup_memory_limit == 4294967296);
  tree.write("/sys/fs/cgroup/user.slice/job.scope/memory.max", "1073741824\n");
  CHECK(read_host_facts(tree.root()).cgroup_memory_limit == 1073741824);
}

TEST_CASE("The tightest cgroup limit counts, of version 1, and in a container's view", "[host]") {
  const ProcTree tree;
  tree.write("/proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/\n");
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");  // the container sees its group as the root
  CHECK(read_host_facts(tree.root()).cgroup_memory_limit == 2147483648);
  tree.write("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  CHECK(read_host_facts(tree.root()).cgroup_memory_limit == 2147483648);
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK_FALSE(read_host_facts(tree.root()).cgroup_memory_limit);
}

TEST_CASE("This host has a name, cores and memory", "[host]") {
  const HostFacts facts = read_host_facts();
  char name[256] = {};
  REQUIRE(::gethostname(name, sizeof name - 1) == 0);
  CHECK(facts.hostname == name);
  CHECK_FALSE(facts.kernel.empty());
  CHECK(facts.cores >= 1);
  CHECK(facts.cores <= facts.cores_online);
  CHECK(facts.memory_total > facts.memory_available);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
  CHECK(facts.memlock_soft.value_or(RLIM_INFINITY) == limit.rlim_cur);
  CHECK(facts.memlock_hard.value_or(RLIM_INFINITY) == limit.rlim_max);
}

TEST_CASE("Process memory is read by kind", "[host]") {
  const ProcTree tree;
  tree.write("/proc/self/status", "VmHWM:\t   900 kB\nVmRSS:\t   800 kB\nVmLck:\t    12 kB\nVmPin:\t     8 kB\n");
  const ProcessMemory memory = read_process_memory(tree.root());
  CHECK(memory.resident == 800 * 1024);
  CHECK(memory.peak == 900 * 1024);
  CHECK(memory.locked == 12 * 1024);
  CHECK(memory.pinned == 8 * 1024);
}

TEST_CASE("Memory that is touched and locked shows in this process", "[host]") {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const HostMemory memory(bytes);
  const ProcessMemory before = read_process_memory();
  std::memset(memory.data(), 1, bytes);
  const ProcessMemory touched = read_process_memory();
  // Resident counters are kept per CPU and lag by some pages; other memory of the process may have been returned meanwhile.
  CHECK(touched.resident > before.resident + bytes * 9 / 10);
  REQUIRE(::syscall(SYS_mlock, memory.data(), std::size_t{65536}) == 0);  // sanitizers turn the library call into nothing
  CHECK(read_process_memory().locked == touched.locked + 65536);
}

TEST_CASE("Too small a RLIMIT_MEMLOCK is explained with its remedy", "[host]") {
  const ProcTree tree;
  write_limits(tree, "8388608", "16777216");
  tree.write("/proc/self/status", "CapEff:\t0000000000000000\nVmLck:\t  4096 kB\nVmPin:\t     0 kB\n");
  CHECK_NOTHROW(require_memlock(4u << 20, "registering 1024 page buffers", tree.root()));
  CHECK_THROWS_AS(require_memlock((4u << 20) + 1, "x", tree.root()), EnvironmentError);
  CHECK_THROWS_AS(require_memlock(UINT64_MAX, "x", tree.root()), EnvironmentError);
  const std::string message = message_of([&] { require_memlock(64u << 20, "registering 16384 page buffers", tree.root()); });
  CHECK(message.find("registering 16384 page buffers locks 64.0 MiB of memory beside 4.0 MiB locked already") == 0);
  CHECK(message.find("RLIMIT_MEMLOCK allows 8.0 MiB (hard limit 16.0 MiB)") != std::string::npos);
  CHECK(message.find("'ulimit -l 69632'") != std::string::npos);
  tree.write("/proc/self/status", "CapEff:\t0000000000004000\n");
  CHECK_NOTHROW(require_memlock(64u << 20, "x", tree.root()));
  tree.write("/proc/self/status", "CapEff:\t0000000000000000\n");
  write_limits(tree, "unlimited", "unlimited");
  CHECK_NOTHROW(require_memlock(64u << 20, "x", tree.root()));
}

TEST_CASE("The memlock limit is raised to the hard limit, and no further", "[host]") {
  rlimit original{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &original) == 0);
  rlimit lowered = original;
  lowered.rlim_cur = 4096;
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &lowered) == 0);
  const std::optional<std::uint64_t> raised = raise_memlock_limit();
  rlimit now{};
  REQUIRE(::getrlimit(RLIMIT_MEMLOCK, &now) == 0);
  CHECK(now.rlim_cur == original.rlim_max);
  CHECK(raised.value_or(RLIM_INFINITY) == original.rlim_max);
  REQUIRE(::setrlimit(RLIMIT_MEMLOCK, &original) == 0);
}

TEST_CASE("Limits of CPU time and of I/O, and the NUMA nodes that are left", "[host]") {
  const ProcTree tree;
  CHECK_FALSE(read_host_facts(tree.root()).cgroup_cpus);
  CHECK(read_host_facts(tree.root()).nodes_allowed.empty());
  tree.write("/proc/self/cgroup", "0::/user.slice/job.scope\n");
  tree.write("/proc/self/status", "Cpus_allowed_list:\t4-5\n");
  tree.write("/sys/fs/cgroup/user.slice/cpu.max", "150000 100000\n");
  tree.write("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
  tree.write("/sys/fs/cgroup/user.slice/job.scope/io.max", "259:0 rbps=max wbps=max riops=5000 wiops=max\n\n");
  tree.write("/sys/devices/system/node/online", "0-1\n");
  tree.write("/sys/devices/system/node/node0/cpulist", "0-3\n");
  tree.write("/sys/devices/system/node/node1/cpulist", "4-7\n");
  const HostFacts facts = read_host_facts(tree.root());
  CHECK(facts.cgroup_cpus == 1.5);
  CHECK(facts.cgroup_io_limits == std::vector<std::string>{"259:0 rbps=max wbps=max riops=5000 wiops=max"});
  CHECK(facts.nodes_allowed == std::vector<std::uint64_t>{1});
  CHECK(cpus_of_node(0, tree.root()) == std::vector<int>{0, 1, 2, 3});
  CHECK(message_of([&] { cpus_of_node(2, tree.root()); }).find("nodes 0-1") != std::string::npos);
  CHECK(message_of([&] { run_on_cpus({100'000}); }).find("this process may run on") != std::string::npos);
}

TEST_CASE("CPU time of threads by name", "[host]") {
  const ProcTree tree;
  for (const char* thread : {"7", "8", "9"})
    tree.write(std::string("/proc/self/task/") + thread + "/comm", thread == std::string("9") ? "main\n" : "iou-sqp-6\n");
  tree.write("/proc/self/task/7/schedstat", "1000 5 6\n");
  tree.write("/proc/self/task/8/schedstat", "30 5 6\n");
  tree.write("/proc/self/task/9/schedstat", "500 5 6\n");
  CHECK(thread_cpu_time("iou-sqp-", tree.root()) == 1030);
  CHECK(thread_cpu_time("none", tree.root()) == 0);
}
