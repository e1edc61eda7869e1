#include "platforms/filesystem.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/proc_text.hpp"

namespace slacktier {
namespace {

// mountinfo writes blanks and backslashes as octal: "\040".
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      result += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trimmed(line)).empty()) {
    words.push_back(line.substr(0, line.find(' ')));
    line.remove_prefix(words.back().size());
  }
  return words;
}

// Both lists, what is in both once.
std::string joined_options(const std::string& first, std::string_view second) {
  std::string all = first;
  while (!second.empty()) {
    const std::string_view option = second.substr(0, second.find(','));
    second.remove_prefix(std::min(second.size(), option.size() + 1));
    if (!option.empty() && fmt::format(",{},", all).find(fmt::format(",{},", option)) == std::string::npos)
      all += fmt::format(",{}", option);
  }
  return all;
}

// The block device below a file: the file system's own, or the one it was mounted from where it numbers its files itself
// (btrfs).
std::optional<dev_t> device_below(const struct stat& status, const Mount& mount) {
  if (S_ISBLK(status.st_mode)) return status.st_rdev;
  if (major(status.st_dev) != 0) return status.st_dev;
  struct stat source {};
  if (mount.source.rfind("/dev/", 0) == 0 && ::stat(mount.source.c_str(), &source) == 0 && S_ISBLK(source.st_mode))
    return source.st_rdev;
  return std::nullopt;
}

bool lies_in(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.substr(0, directory.size()) == directory && (path.size() == directory.size() || path[directory.size()] == '/');
}

// The path, or the nearest parent of it that exists.
std::string existing(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::absolute(path, error);
  while (!error && !fs::exists(at, error)) {
    if (!at.has_relative_path()) break;
    error.clear();
    at = at.parent_path();
  }
  fs::path real;
  if (!error) real = fs::canonical(at, error);
  if (error || path.empty()) throw UsageError(fmt::format("path '{}' cannot be resolved: {}", path, error.message()));
  return real.string();
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string refusal(const char* what) { return fmt::format("{}: {}", what, std::generic_category().message(errno)); }

// cachestat(2), Linux 6.5: a number of pages without a mapping. Not in older C libraries' headers.
struct CacheRange {
  std::uint64_t offset = 0, bytes = 0;
};
struct CacheCounts {
  std::uint64_t cached = 0, dirty = 0, writeback = 0, evicted = 0, recently_evicted = 0;
};
constexpr long cachestat_number = 451;  // on every architecture

// One attempt with blocks of `bytes`; `again` when a larger block may do.
struct Attempt {
  DirectIo result;
  bool again = false;
};

Attempt attempt_device(const std::string& path, std::uint32_t bytes, char* buffer) {
  const File file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  if (file.get() < 0) return {{false, 0, refusal("opening it with O_DIRECT")}, false};
  errno = 0;
  if (::pread(file.get(), buffer, bytes, 0) != static_cast<ssize_t>(bytes)) {
    const bool alignment = errno == EINVAL;
    return {{false, 0, errno == 0 ? "a direct read was short" : refusal("an aligned direct read")}, alignment};
  }
  return {{true, bytes, {}}, false};
}

Attempt attempt_directory(const std::string& directory, std::uint32_t bytes, char* buffer) {
  std::string name = directory + "/.slacktier-direct-XXXXXX";
  const File file(::mkostemp(name.data(), O_DIRECT | O_CLOEXEC));
  if (file.get() < 0) {
    Attempt attempt{{false, 0, refusal("opening a scratch file with O_DIRECT")}, false};
    ::unlink(name.c_str());  // some file systems create the file before they refuse the flag
    return attempt;
  }
  ::unlink(name.c_str());
  for (std::uint32_t i = 0; i < bytes; ++i) buffer[i] = static_cast<char>(i * 131 + 7);
  errno = 0;
  if (::pwrite(file.get(), buffer, bytes, 0) != static_cast<ssize_t>(bytes)) {
    const bool alignment = errno == EINVAL;
    return {{false, 0, errno == 0 ? "a direct write was short" : refusal("an aligned direct write")}, alignment};
  }
  // Some file systems write through the cache but read directly: drop what the write left there before looking.
  ::fdatasync(file.get());
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  std::memset(buffer, 0, bytes);
  errno = 0;
  if (::pread(file.get(), buffer, bytes, 0) != static_cast<ssize_t>(bytes)) {
    const bool alignment = errno == EINVAL;
    return {{false, 0, errno == 0 ? "a direct read was short" : refusal("an aligned direct read")}, alignment};
  }
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (buffer[i] != static_cast<char>(i * 131 + 7))
      return {{false, 0, "a direct read returned other bytes than were written"}, false};
  }
  if (cached_bytes(file.get(), bytes).value_or(0) > 0) {
    return {{false, 0, "O_DIRECT is accepted but ignored: the page cache holds what was read"}, false};
  }
  return {{true, bytes, {}}, false};
}

}  // namespace

std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view absolute_path) {
  std::optional<Mount> best;
  while (!mountinfo.empty()) {  // id parent major:minor root point options [optional...] - type source options
    const std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(mountinfo.size(), line.size() + 1));
    const std::vector<std::string_view> words = words_of(line);
    std::size_t dash = 6;
    while (dash < words.size() && words[dash] != "-") ++dash;
    if (dash + 2 >= words.size()) continue;
    Mount mount{unescaped(words[4]), std::string(words[dash + 1]), unescaped(words[dash + 2]), std::string(words[5])};
    if (dash + 3 < words.size()) mount.options = joined_options(mount.options, words[dash + 3]);
    // Of mounts on the same point the last one is on top.
    if (lies_in(absolute_path, mount.point) && (!best || mount.point.size() >= best->point.size())) best = std::move(mount);
  }
  return best;
}

PathFacts read_path_facts(const std::string& path) {
  PathFacts facts;
  facts.path = existing(path);
  struct stat status {};
  if (::stat(facts.path.c_str(), &status) != 0) throw_errno("stat " + facts.path);
  facts.block_device = S_ISBLK(status.st_mode);
  facts.mount = find_mount(read_text("/proc/self/mountinfo").value_or(""), facts.path).value_or(Mount{});
  facts.device = device_below(status, facts.mount);
  if (!facts.block_device) {
    struct statvfs space {};
    if (::statvfs(facts.path.c_str(), &space) != 0) throw_errno("statvfs " + facts.path);
    facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
  }
#ifdef STATX_DIOALIGN
  struct statx extended {};
  if (::statx(AT_FDCWD, facts.path.c_str(), 0, STATX_DIOALIGN, &extended) == 0 &&
      (extended.stx_mask & STATX_DIOALIGN) != 0) {
    facts.memory_align = extended.stx_dio_mem_align;
    facts.offset_align = extended.stx_dio_offset_align;
  }
#endif
  return facts;
}

DirectIo probe_direct_io(const std::string& path) {
  const PathFacts facts = read_path_facts(path);
  const bool directory = std::filesystem::is_directory(facts.path);
  const std::string where =
      facts.block_device || directory ? facts.path : std::filesystem::path(facts.path).parent_path().string();
  constexpr std::size_t largest = 65536;
  const std::unique_ptr<char, decltype(&std::free)> buffer(static_cast<char*>(std::aligned_alloc(largest, largest)),
                                                           &std::free);
  if (buffer == nullptr) throw std::bad_alloc();
  Attempt attempt;
  for (const std::uint32_t bytes : {4096U, 16384U, 65536U}) {
    attempt =
        facts.block_device ? attempt_device(where, bytes, buffer.get()) : attempt_directory(where, bytes, buffer.get());
    if (attempt.result.works || !attempt.again) break;
  }
  if (!attempt.result.works) {
    attempt.result.reason +=
        fmt::format(" ({}{} on {})", facts.block_device ? "block device, node in " : "", facts.mount.type, where);
  }
  return attempt.result;
}

std::optional<std::uint64_t> cached_bytes(int descriptor, std::uint64_t bytes) {
  const std::uint64_t page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const CacheRange range{0, bytes};
  CacheCounts counts;
  if (::syscall(cachestat_number, descriptor, &range, &counts, 0) == 0) return std::min(counts.cached * page, bytes);
  // Older kernels: window by window through a mapping, which touches no page.
  constexpr std::uint64_t window = std::uint64_t{1} << 30;
  std::vector<unsigned char> present;
  std::uint64_t cached = 0;
  for (std::uint64_t at = 0; at < bytes; at += window) {
    const std::size_t length = static_cast<std::size_t>(std::min(window, bytes - at));
    void* view = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, static_cast<off_t>(at));
    if (view == MAP_FAILED) return std::nullopt;
    present.assign((length + page - 1) / page, 0);
    const bool told = ::mincore(view, length, present.data()) == 0;
    ::munmap(view, length);
    if (!told) return std::nullopt;
    for (const unsigned char one : present) cached += (one & 1) != 0 ? page : 0;
  }
  return std::min(cached, bytes);
}

std::uint64_t disk_bytes(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw_errno("open " + path);
  const off_t end = ::lseek(fd, 0, SEEK_END);
  const int error = errno;
  ::close(fd);
  if (end < 0) {
    errno = error;
    throw_errno("size of " + path);
  }
  return static_cast<std::uint64_t>(end);
}

}  // namespace slacktier
