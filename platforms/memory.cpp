#include "platforms/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

[[noreturn]] void refuse(std::size_t bytes, int error) {
  throw EnvironmentError(
      fmt::format("the system refuses {} bytes ({:.1f} GiB) of memory: {}; free memory, ask for less, or look at "
                  "'ulimit -v', the container's memory limit and vm.overcommit_memory",
                  bytes, static_cast<double>(bytes) / (1 << 30), std::generic_category().message(error)));
}

}  // namespace

HostMemory::HostMemory(std::size_t bytes, bool huge) {
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - kHugePage - kPage) refuse(bytes, ENOMEM);
  const std::size_t size = round_up(bytes, kPage);
  // A huge page needs an aligned 2 MiB: map that much more and give the ends back, so that the size stays exact.
  const std::size_t spare = huge && size >= kHugePage ? kHugePage : 0;
  void* mapped = ::mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) refuse(bytes, errno);
  char* begin = static_cast<char*>(mapped);
  if (spare != 0) {
    const std::size_t head =
        round_up(reinterpret_cast<std::uintptr_t>(begin), kHugePage) - reinterpret_cast<std::uintptr_t>(begin);
    if (head != 0) ::munmap(begin, head);
    // Ends round up to the system's page, which may be larger than 4 KiB.
    const std::size_t end = round_up(head + size, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    if (end < size + spare) ::munmap(begin + end, size + spare - end);
    begin += head;
  }
  // Advice only: a kernel without huge pages refuses it and serves small ones. Where huge pages are always on, memory that
  // did not ask for them keeps to what is touched.
  ::madvise(begin, size, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  data_ = begin;
  bytes_ = size;
}

HostMemory::HostMemory(HostMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

HostMemory& HostMemory::operator=(HostMemory&& other) noexcept {
  if (this != &other) {
    if (data_ != nullptr) ::munmap(data_, bytes_);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace slacktier
