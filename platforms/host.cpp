#include "platforms/host.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/error.hpp"
#include "platforms/proc_text.hpp"
#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

constexpr int kCapIpcLock = 14;  // linux/capability.h

std::uint64_t kibibytes(std::string_view text, std::string_view key) {
  const std::optional<std::string> field = text_field(text, key);
  return field ? leading_number(*field).value_or(0) * 1024 : 0;
}

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
std::string pretty_name(std::string_view os_release) {
  constexpr std::string_view key = "PRETTY_NAME=";
  for (std::size_t at = os_release.find(key); at != std::string_view::npos; at = os_release.find(key, at + 1)) {
    if (at != 0 && os_release[at - 1] != '\n') continue;
    std::string_view value = os_release.substr(at + key.size());
    value = trimmed(value.substr(0, value.find('\n')));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return std::string(value);
  }
  return {};
}

std::string cpu_model(std::string_view cpuinfo) {
  if (const auto model = text_field(cpuinfo, "model name")) return *model;
  const auto implementer = text_field(cpuinfo, "CPU implementer"), part = text_field(cpuinfo, "CPU part");
  if (implementer && part) return fmt::format("Arm implementer {} part {}", *implementer, *part);
  return {};
}

// The word in brackets: "always [madvise] never".
std::string chosen(std::string_view text) {
  const auto open = text.find('['), close = text.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(text.substr(open + 1, close - open - 1));
}

// The tightest limit named `file` in `group` and the groups above it, below the mount point `mount`.
std::optional<std::uint64_t> tightest(const std::string& mount, std::string group, const char* file) {
  std::optional<std::uint64_t> limit;
  for (;;) {
    if (const auto text = read_line(mount + group + "/" + file)) {
      const auto value = leading_number(*text);  // none for "max"
      // cgroup v1 writes the largest multiple of a page for "no limit".
      if (value && *value < std::uint64_t{1} << 62) limit = std::min(limit.value_or(*value), *value);
    }
    if (group.empty()) return limit;
    group.resize(group.rfind('/'));
  }
}

// This process's groups: path below the mount point, and whether it is the unified hierarchy's or v1's for memory.
struct Group {
  std::string path;
  bool unified = false;
};

std::vector<Group> memory_groups(const std::string& root) {
  const std::string text = read_text(root + "/proc/self/cgroup").value_or("");
  std::vector<Group> groups;
  std::string_view rest = text;
  while (!rest.empty()) {  // hierarchy:controllers:path
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    std::string group(line.substr(second + 1));
    if (group.empty() || group.front() != '/') continue;
    if (group == "/") group.clear();
    if (controllers == ",,") groups.push_back({group, true});
    if (controllers.find(",memory,") != std::string::npos) groups.push_back({group, false});
  }
  return groups;
}

std::optional<std::uint64_t> cgroup_memory_limit(const std::string& root) {
  std::optional<std::uint64_t> limit;
  for (const Group& group : memory_groups(root)) {
    const auto value = group.unified ? tightest(root + "/sys/fs/cgroup", group.path, "memory.max")
                                     : tightest(root + "/sys/fs/cgroup/memory", group.path, "memory.limit_in_bytes");
    if (value) limit = std::min(limit.value_or(*value), *value);
  }
  return limit;
}

std::optional<std::uint64_t> cgroup_memory_high(const std::string& root) {
  std::optional<std::uint64_t> limit;
  for (const Group& group : memory_groups(root))
    if (group.unified) limit = tightest(root + "/sys/fs/cgroup", group.path, "memory.high");
  return limit;
}

// cpu.max is "50000 100000" (quota and period in us) or "max 100000".
std::optional<double> cgroup_cpus(const std::string& root) {
  std::optional<double> limit;
  for (const Group& group : memory_groups(root)) {
    if (!group.unified) continue;
    for (std::string path = group.path;; path.resize(path.rfind('/'))) {
      const std::string text = read_line(root + "/sys/fs/cgroup" + path + "/cpu.max").value_or("");
      const auto gap = text.find(' ');
      const auto quota = leading_number(text);
      const auto period = gap == std::string::npos ? std::nullopt : leading_number(std::string_view(text).substr(gap));
      if (quota && period && *period > 0) {
        const double cpus = static_cast<double>(*quota) / static_cast<double>(*period);
        limit = std::min(limit.value_or(cpus), cpus);
      }
      if (path.empty()) break;
    }
  }
  return limit;
}

std::vector<std::string> cgroup_io_limits(const std::string& root) {
  std::vector<std::string> lines;
  for (const Group& group : memory_groups(root)) {
    if (!group.unified) continue;
    for (std::string path = group.path;; path.resize(path.rfind('/'))) {
      std::istringstream text(read_text(root + "/sys/fs/cgroup" + path + "/io.max").value_or(""));
      for (std::string line; std::getline(text, line);)
        if (!trimmed(line).empty()) lines.emplace_back(trimmed(line));
      if (path.empty()) break;
    }
  }
  return lines;
}

std::vector<std::uint64_t> nodes_allowed(const std::string& root, std::string_view status) {
  const auto allowed = list_numbers(text_field(status, "Cpus_allowed_list").value_or(""));
  const auto nodes = list_numbers(read_line(root + "/sys/devices/system/node/online").value_or(""));
  std::vector<std::uint64_t> found;
  if (!allowed || !nodes) return found;
  for (const std::uint64_t node : *nodes) {
    const auto cpus =
        list_numbers(read_line(fmt::format("{}/sys/devices/system/node/node{}/cpulist", root, node)).value_or(""));
    if (cpus && std::any_of(cpus->begin(), cpus->end(), [&](std::uint64_t cpu) {
          return std::find(allowed->begin(), allowed->end(), cpu) != allowed->end();
        }))
      found.push_back(node);
  }
  return found;
}

struct MemlockLimit {
  std::optional<std::uint64_t> soft, hard;
};

// "Max locked memory         8388608              unlimited            bytes"
MemlockLimit memlock_limit(std::string_view limits) {
  constexpr std::string_view key = "Max locked memory";
  const auto at = limits.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view line = limits.substr(at + key.size());
  line = trimmed(line.substr(0, line.find('\n')));
  const auto gap = line.find(' ');
  return {leading_number(line.substr(0, gap)),
          gap == std::string_view::npos ? std::nullopt : leading_number(line.substr(gap))};
}

bool has_capability(std::string_view status, int capability) {
  const auto text = text_field(status, "CapEff");
  if (!text) return false;
  std::uint64_t mask = 0;
  if (std::from_chars(text->data(), text->data() + text->size(), mask, 16).ec != std::errc()) return false;
  return (mask >> capability & 1) != 0;
}

std::string limit_text(const std::optional<std::uint64_t>& limit) { return limit ? bytes_text(*limit) : "unlimited"; }

}  // namespace

HostFacts read_host_facts(const std::string& root) {
  HostFacts facts;
  const std::string meminfo = read_text(root + "/proc/meminfo").value_or("");
  const std::string status = read_text(root + "/proc/self/status").value_or("");
  facts.hostname = read_line(root + "/proc/sys/kernel/hostname").value_or("");
  facts.kernel = read_line(root + "/proc/sys/kernel/osrelease").value_or("");
  facts.os_release = pretty_name(read_text(root + "/etc/os-release").value_or(""));
  facts.cpu_model = cpu_model(read_text(root + "/proc/cpuinfo").value_or(""));
  facts.cores_online = list_size(read_line(root + "/sys/devices/system/cpu/online").value_or("")).value_or(0);
  facts.cores = list_size(text_field(status, "Cpus_allowed_list").value_or("")).value_or(facts.cores_online);
  facts.numa_nodes = list_size(read_line(root + "/sys/devices/system/node/online").value_or("")).value_or(1);
  facts.memory_total = kibibytes(meminfo, "MemTotal");
  facts.memory_available = kibibytes(meminfo, "MemAvailable");
  facts.huge_pages = chosen(read_line(root + "/sys/kernel/mm/transparent_hugepage/enabled").value_or(""));
  facts.cgroup_memory_limit = cgroup_memory_limit(root);
  facts.cgroup_memory_high = cgroup_memory_high(root);
  facts.cgroup_cpus = cgroup_cpus(root);
  facts.cgroup_io_limits = cgroup_io_limits(root);
  facts.nodes_allowed = nodes_allowed(root, status);
  const MemlockLimit limit = memlock_limit(read_text(root + "/proc/self/limits").value_or(""));
  facts.memlock_soft = limit.soft;
  facts.memlock_hard = limit.hard;
  facts.memlock_exempt = has_capability(status, kCapIpcLock);
  if (const auto text = read_line(root + "/proc/sys/kernel/io_uring_disabled")) {
    if (const auto value = leading_number(*text)) facts.io_uring_disabled = static_cast<int>(*value);
  }
  return facts;
}

ProcessMemory read_process_memory(const std::string& root) {
  const std::string status = read_text(root + "/proc/self/status").value_or("");
  return {kibibytes(status, "VmRSS"), kibibytes(status, "VmHWM"), kibibytes(status, "VmLck"), kibibytes(status, "VmPin")};
}

Nanos thread_cpu_time(const std::string& prefix, const std::string& root) {
  std::uint64_t time = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator at(root + "/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    const std::string thread = at->path().string();
    // Threads may end meanwhile.
    if (read_line(thread + "/comm").value_or("").starts_with(prefix))
      time += leading_number(read_line(thread + "/schedstat").value_or("")).value_or(0);
  }
  return static_cast<Nanos>(time);
}

void run_on_cpus(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus)
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) == 0) return;
  const std::string status = read_text("/proc/self/status").value_or("");
  throw EnvironmentError(
      fmt::format("CPUs {} cannot be used ({}): this process may run on {}; taskset or the control group's "
                  "cpuset.cpus sets that",
                  fmt::join(cpus, ","), std::generic_category().message(errno),
                  text_field(status, "Cpus_allowed_list").value_or("unknown CPUs")));
}

std::vector<int> cpus_of_node(int node, const std::string& root) {
  const auto cpus =
      list_numbers(read_line(fmt::format("{}/sys/devices/system/node/node{}/cpulist", root, node)).value_or(""));
  if (!cpus)
    throw EnvironmentError(fmt::format("there is no NUMA node {} with CPUs; this machine has nodes {}", node,
                                       read_line(root + "/sys/devices/system/node/online").value_or("0 only")));
  return {cpus->begin(), cpus->end()};
}

std::optional<std::uint64_t> raise_memlock_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) throw_errno("getrlimit(RLIMIT_MEMLOCK)");
  if (limit.rlim_cur != limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) throw_errno("raising RLIMIT_MEMLOCK to its hard limit");
  }
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

void require_memlock(std::uint64_t bytes, const std::string& purpose, const std::string& root) {
  const std::string status = read_text(root + "/proc/self/status").value_or("");
  const MemlockLimit limit = memlock_limit(read_text(root + "/proc/self/limits").value_or(""));
  if (!limit.soft || has_capability(status, kCapIpcLock)) return;
  const std::uint64_t held = kibibytes(status, "VmLck") + kibibytes(status, "VmPin");
  if (bytes <= *limit.soft && held <= *limit.soft - bytes) return;
  throw EnvironmentError(fmt::format(
      "{} locks {} of memory{}, but RLIMIT_MEMLOCK allows {} (hard limit {}): raise it with 'ulimit -l {}' (above the hard "
      "limit as root: 'prlimit --pid $$ --memlock=unlimited'), in a container with 'docker run --ulimit memlock=-1', or in "
      "a "
      "service with LimitMEMLOCK=infinity",
      purpose, bytes_text(bytes), held == 0 ? std::string() : fmt::format(" beside {} locked already", bytes_text(held)),
      limit_text(limit.soft), limit_text(limit.hard), (bytes + held + 1023) / 1024));
}

void limit_own_memory(std::uint64_t bytes, const std::string& command, const std::string& root) {
  std::string refusal = "this process is in no control group of the unified hierarchy";
  for (const Group& group : memory_groups(root)) {
    if (!group.unified) continue;
    const std::string file = root + "/sys/fs/cgroup" + group.path + "/memory.high";
    const int descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
    const std::string text = std::to_string(bytes);
    const bool written =
        descriptor >= 0 && ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (written) return;
    refusal = fmt::format("{}: {}", file, std::generic_category().message(error));
  }
  throw EnvironmentError(
      fmt::format("the memory limit of {} cannot be set here ({}); start it in a group that has it: systemd-run --scope -p "
                  "MemoryHigh={} "
                  "{} ..., without the option",
                  bytes_text(bytes), refusal, bytes, command));
}

}  // namespace slacktier
