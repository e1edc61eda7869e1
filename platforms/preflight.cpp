#include "platforms/preflight.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <system_error>

#include <fmt/format.h>

#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

// Disks slow down to cool themselves from about here.
constexpr double hot_c = 70;
// Page buffers of an ordinary run, registered by a few rings.
constexpr std::uint64_t memlock_wanted = std::uint64_t{64} << 20;
constexpr std::uint64_t space_wanted = std::uint64_t{1} << 30;

// A regular file that is large enough tells by being read: its folder may be read-only.
std::optional<DirectIo> read_directly(const std::string& file) {
  struct stat status {};
  constexpr std::uint32_t block = 4096;
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
  if (!storage.direct.works)
    findings.push_back({"direct_io_off", fmt::format("{}: no direct I/O: {}", path, storage.direct.reason),
                        "reads go through the page cache, and its hits look like a fast disk",
                        "use a folder on ext4 or xfs on a local disk, or a block device"});
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
}

}  // namespace

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
  look_at_host(host, io_uring, findings);
  return findings;
}

std::vector<Finding> preflight(const std::string& path, std::uint64_t begin) {
  return preflight(read_storage_facts(path, begin), read_host_facts(), probe_io_uring());
}

}  // namespace slacktier
