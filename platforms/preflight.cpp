#include "platforms/preflight.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

// Disks slow down to cool themselves from about here.
constexpr double hot_c = 70;
// Page buffers of an ordinary run, registered by a few rings.
constexpr std::uint64_t memlock_wanted = std::uint64_t{64} << 20;
constexpr std::uint32_t page = 4096;
constexpr std::uint64_t space_wanted = std::uint64_t{1} << 30;

// A regular file that is large enough tells by being read: its folder may be read-only.
std::optional<DirectIo> read_directly(const std::string& file) {
  struct stat status {};
  constexpr std::uint32_t block = page;
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < block) return std::nullopt;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  const std::unique_ptr<void, decltype(&std::free)> buffer(std::aligned_alloc(block, block), &std::free);
  const ssize_t got = descriptor < 0 ? -1 : ::pread(descriptor, buffer.get(), block, 0);
  const int error = errno;
  if (descriptor >= 0) ::close(descriptor);
  if (got == block) return DirectIo{true, block, {}};
  if (descriptor >= 0 && error == EINVAL) return std::nullopt;  // larger blocks may do: the probe tries them
  return DirectIo{false, 0, fmt::format("reading it with O_DIRECT: {}", std::generic_category().message(error))};
}

bool is_virtual(const DiskFacts& disk) { return disk.attachment == "virtio" || disk.attachment == "xen"; }

double gigatransfers(const std::string& speed) { return std::strtod(speed.c_str(), nullptr); }

std::string share(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{} of {}", bytes_text(part), bytes_text(whole));
}

void look_at_file(const StorageFacts& storage, std::vector<Finding>& findings) {
  const std::string& path = storage.path.path;
  if (storage.extents) {
    const FileExtents& extents = *storage.extents;
    if (extents.holes > 0)
      findings.push_back({"image_holes", fmt::format("{}: {} are holes", path, share(extents.holes, extents.bytes)),
                          "reads of them touch no disk and look impossibly fast", "stage the image again"});
    if (extents.unwritten > 0)
      findings.push_back(
          {"image_unwritten",
           fmt::format("{}: {} were reserved but never written", path, share(extents.unwritten, extents.bytes)),
           "reads of them touch no disk and look impossibly fast", "stage the image again"});
    if (extents.encoded > 0)
      findings.push_back(
          {"image_encoded",
           fmt::format("{}: {} are compressed or encrypted by the file system", path, share(extents.encoded, extents.bytes)),
           "a read of one page reads and decodes more than a page",
           "turn that off for the folder and stage the image again"});
  }
  if (storage.zero_share.value_or(0) > 0)
    findings.push_back({"zero_pages",
                        fmt::format("{}: {:.0f}% of the pages sampled hold zeros", path, 100 * *storage.zero_share),
                        "blocks that were trimmed or never written are answered without a read and look impossibly fast",
                        "stage an image there before it is measured"});
  if (!storage.direct.works)
    findings.push_back({"direct_io_off", fmt::format("{}: no direct I/O: {}", path, storage.direct.reason),
                        "reads go through the page cache, and its hits look like a fast disk",
                        "use a folder on ext4 or xfs on a local disk, or a block device"});
  if (const auto align = storage.path.offset_align.value_or(0); storage.direct.works && align > page)
    findings.push_back({"direct_io_coarse", fmt::format("{}: direct reads must be multiples of {} B", path, align),
                        "pages of 4096 B are refused", fmt::format("stage with --page-bytes {}", align)});
  if (!storage.path.block_device && storage.path.free_bytes < space_wanted)
    findings.push_back({"space_low", fmt::format("{}: {} free", path, bytes_text(storage.path.free_bytes)),
                        "an image larger than memory that could cache it has no place",
                        "free space, or use another folder"});
}

void look_at_disk(const StorageFacts& storage, std::vector<Finding>& findings) {
  const DiskFacts& disk = storage.disk;
  if (disk.name.empty()) {
    findings.push_back({"disk_unknown",
                        fmt::format("{}: no disk of this host is below it ({} from {})", storage.path.path,
                                    storage.path.mount.type, storage.path.mount.source),
                        "times are those of memory or of a network, and nothing tells of which device",
                        "use a folder on a local disk, or name a block device"});
    return;
  }
  if (disk.pcie) {
    const PcieLink& link = *disk.pcie;
    const bool slow = gigatransfers(link.speed) < gigatransfers(link.max_speed);
    const bool narrow = link.max_width && link.width && *link.width < *link.max_width;
    if (slow || narrow)
      findings.push_back({"pcie_link_slow",
                          fmt::format("{}: PCIe link at {} x{} of {} x{} ({})", disk.name, link.speed,
                                      link.width.value_or(0), link.max_speed, link.max_width.value_or(0), link.address),
                          "the link, not the disk, may bound bandwidth and add to each read",
                          "move the disk to another slot, or look into firmware and power settings of the link"});
  }
  if (disk.temperature_c && *disk.temperature_c >= hot_c)
    findings.push_back({"disk_hot", fmt::format("{}: {:.0f} degrees Celsius", disk.name, *disk.temperature_c),
                        "a hot disk slows itself down, later steps more than earlier ones",
                        "cool it, and let it rest before a run"});
  if (is_virtual(disk))
    findings.push_back({"disk_virtual", fmt::format("{}: a virtual disk ({})", disk.name, disk.attachment),
                        "its times are the hypervisor's and its neighbours', and may be capped",
                        "read them as this machine's, not as a disk's"});
  else if (disk.rotational.value_or(false))
    findings.push_back({"disk_rotational", fmt::format("{}: a rotating disk", disk.name),
                        "each random read waits for milliseconds", "use flash"});
  if (!disk.scheduler.empty() && disk.scheduler != "none" && disk.scheduler != "noop")
    findings.push_back({"disk_scheduler", fmt::format("{}: I/O scheduler {}", disk.name, disk.scheduler),
                        "it holds and reorders reads that a fast disk could have begun",
                        fmt::format("echo none > /sys/block/{}/queue/scheduler", disk.name)});
}

// What lies between a disk and a read of one page of it.
void look_at_layout(const StorageFacts& storage, const HostFacts& host, std::vector<Finding>& findings) {
  const DiskFacts& disk = storage.disk;
  if (disk.name.empty()) return;
  if (disk.logical_block.value_or(0) > page)
    findings.push_back({"sectors_large", fmt::format("{}: sectors of {} B", disk.name, *disk.logical_block),
                        "pages of 4096 B are refused", fmt::format("stage with --page-bytes {}", *disk.logical_block)});
  if (disk.partition_start.value_or(0) % page != 0)
    findings.push_back({"partition_misaligned",
                        fmt::format("{}: begins at byte {}, no multiple of {}", disk.partition, *disk.partition_start, page),
                        "each page lies on two of the disk's blocks, and each read of one reads both",
                        "make the partition anew at a multiple of 1 MiB"});
  if (disk.numa_node && !host.nodes_allowed.empty() &&
      std::find(host.nodes_allowed.begin(), host.nodes_allowed.end(), *disk.numa_node) == host.nodes_allowed.end())
    findings.push_back({"numa_remote",
                        fmt::format("{}: at NUMA node {}, this process runs on {}", disk.name, *disk.numa_node,
                                    fmt::join(host.nodes_allowed, ", ")),
                        "each read and its interrupt cross the link between the nodes",
                        fmt::format("start it with numactl --cpunodebind={0} --membind={0}", *disk.numa_node)});
  for (const std::string& limit : host.cgroup_io_limits)
    if (!disk.number.empty() && limit.starts_with(disk.number + " "))
      findings.push_back({"io_capped", fmt::format("{}: io.max of the control group is {}", disk.name, limit),
                          "the group, not the disk, may bound the reads",
                          "leave it if it is meant; else set io.max to max"});
}

void note_queue(const DiskFacts& disk, std::vector<Finding>& findings) {
  if (disk.nomerges.value_or(2) != 2)
    findings.push_back({"disk_merges", fmt::format("{}: nomerges is {}", disk.name, *disk.nomerges),
                        "each read is compared with those that wait, though random pages never merge: CPU time a page",
                        fmt::format("echo 2 > /sys/block/{}/queue/nomerges", disk.name), true});
  if (disk.write_cache == "write back")
    findings.push_back({"disk_write_back", fmt::format("{}: its write cache is on", disk.name),
                        "what was written shortly before is still on its way to the flash while the first reads run",
                        "after staging, let it rest for a minute", true});
}

void look_at_host(const HostFacts& host, const IoUringSupport& io_uring, std::vector<Finding>& findings) {
  if (!io_uring.usable)
    findings.push_back(
        {"io_uring_refused", "io_uring is refused", io_uring.reason, "or use source pread, which the results label"});
  if (host.memlock_hard && *host.memlock_hard < memlock_wanted && !host.memlock_exempt)
    findings.push_back({"memlock_low", fmt::format("RLIMIT_MEMLOCK is at most {}", bytes_text(*host.memlock_hard)),
                        "page buffers cannot be registered with io_uring, and each read pins its own",
                        "set LimitMEMLOCK=infinity in the unit, or raise memlock in /etc/security/limits.conf"});
  const auto capped = [&](const std::optional<std::uint64_t>& limit, const char* file) {
    if (limit && *limit < host.memory_total)
      findings.push_back(
          {"memory_capped",
           fmt::format("{} of the control group is {} of {}", file, bytes_text(*limit), bytes_text(host.memory_total)),
           "tables, pools and page cache share it", "leave it if it is meant; else raise it for the group"});
  };
  capped(host.cgroup_memory_limit, "memory.max");
  capped(host.cgroup_memory_high, "memory.high");
  if (host.cgroup_cpus && *host.cgroup_cpus < static_cast<double>(host.cores))
    findings.push_back({"cpu_capped",
                        fmt::format("cpu.max of the control group is {:.1f} of {} CPUs", *host.cgroup_cpus, host.cores),
                        "its threads stand still when their share of a period is used up, and the longest reads are theirs",
                        "leave it if it is meant; else set cpu.max to max"});
}

}  // namespace

std::optional<double> sample_zeros(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t first = (begin + page - 1) / page, last = end / page;
  if (last <= first) return std::nullopt;
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (descriptor < 0) descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return std::nullopt;
  const std::unique_ptr<unsigned char, decltype(&std::free)> buffer(
      static_cast<unsigned char*>(std::aligned_alloc(page, page)), &std::free);
  std::mt19937_64 random(1);
  int zeros = 0, read = 0;
  for (int i = 0; i < 64; ++i) {
    const std::uint64_t at = (first + random() % (last - first)) * page;
    if (::pread(descriptor, buffer.get(), page, static_cast<off_t>(at)) != page) continue;
    ++read;
    zeros += std::all_of(buffer.get(), buffer.get() + page, [](unsigned char byte) { return byte == 0; });
  }
  ::close(descriptor);
  if (read == 0) return std::nullopt;
  return static_cast<double>(zeros) / read;
}

StorageFacts read_storage_facts(const std::string& path, std::uint64_t begin, const std::string& root) {
  StorageFacts facts;
  facts.path = read_path_facts(path);
  if (facts.path.device) facts.disk = read_disk_facts(*facts.path.device, root);
  const auto direct = read_directly(facts.path.path);
  facts.direct = direct ? *direct : probe_direct_io(facts.path.path);
  if (!facts.path.block_device) facts.extents = read_extents(facts.path.path, begin);
  return facts;
}

std::vector<Finding> preflight(const StorageFacts& storage, const HostFacts& host, const IoUringSupport& io_uring) {
  std::vector<Finding> findings;
  look_at_file(storage, findings);
  look_at_disk(storage, findings);
  look_at_layout(storage, host, findings);
  look_at_host(host, io_uring, findings);
  note_queue(storage.disk, findings);
  return findings;
}

std::vector<Finding> preflight(const std::string& path, std::uint64_t begin) {
  return preflight(read_storage_facts(path, begin), read_host_facts(), probe_io_uring());
}

}  // namespace slacktier
