#include "tier/sources/ring.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace slacktier {
namespace {

struct Flag {
  unsigned bits;
  const char* name;
};

// What lowers the cost of a read and changes nothing else, the first to be given up last. Flags that work only with others
// stand after them.
constexpr Flag savings[] = {
#if defined(IORING_SETUP_COOP_TASKRUN)
    {IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG, "cooperative completions"},
#endif
#if defined(IORING_SETUP_SINGLE_ISSUER)
    {IORING_SETUP_SINGLE_ISSUER, "single issuer"},
#endif
#if defined(IORING_SETUP_DEFER_TASKRUN)
    {IORING_SETUP_DEFER_TASKRUN, "deferred completions"},
#endif
};

// A poller's completions come from its own thread.
bool fits_poller(const Flag& flag) {
#if defined(IORING_SETUP_SINGLE_ISSUER)
  return flag.bits == IORING_SETUP_SINGLE_ISSUER;
#else
  return flag.bits == 0;
#endif
}

}  // namespace

Ring::~Ring() {
  if (open_) io_uring_queue_exit(&ring_);
}

int Ring::open(const RingOptions& options) {
  step_ = "set-up";
  io_uring_params wanted{};
  wanted.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
  wanted.cq_entries = options.completions;
  if (options.poll_completions) wanted.flags |= IORING_SETUP_IOPOLL;
  if (options.poller_cpu >= 0) {
    wanted.flags |= IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF;
    wanted.sq_thread_cpu = static_cast<unsigned>(options.poller_cpu);
    wanted.sq_thread_idle = 20;  // ms without work until it sleeps
    if (options.share_poller >= 0) {
      wanted.flags |= IORING_SETUP_ATTACH_WQ;
      wanted.wq_fd = static_cast<unsigned>(options.share_poller);
    }
  }
  std::vector<Flag> optional;
  for (const Flag& flag : savings)
    if (options.poller_cpu < 0 || fits_poller(flag)) optional.push_back(flag);
  for (;;) {
    io_uring_params params = wanted;
    for (const Flag& flag : optional) params.flags |= flag.bits;
    const int status = io_uring_queue_init_params(options.submissions, &ring_, &params);
    if (status == 0) {
      open_ = true;
      return 0;
    }
    if (status != -EINVAL || optional.empty()) return status;
    optional.pop_back();
  }
}

int Ring::register_file(int descriptor) {
  step_ = "file registration";
  return io_uring_register_files(&ring_, &descriptor, 1);
}

int Ring::register_buffers(std::span<std::byte> memory) {
  step_ = "buffer registration";
  constexpr std::size_t largest = std::size_t{1} << 30;
  std::vector<iovec> regions;
  for (std::size_t at = 0; at < memory.size(); at += largest)
    regions.push_back({memory.data() + at, std::min(largest, memory.size() - at)});
  return io_uring_register_buffers(&ring_, regions.data(), static_cast<unsigned>(regions.size()));
}

std::string Ring::flags() const {
  std::vector<const char*> names;
  for (const Flag& flag : savings)
    if ((ring_.flags & flag.bits) == flag.bits) names.push_back(flag.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace slacktier
