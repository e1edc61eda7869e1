// Page source `uring`: io_uring with O_DIRECT, fixed files and fixed buffers, N threads a disk, each with a ring of its own.
#include <fmt/format.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "platforms/host.hpp"
#include "platforms/io_uring_probe.hpp"
#include "platforms/quantity.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {
namespace {

// SQEs handed to the kernel between two looks at completions: submitting takes about 1 us a page, and a page that arrived
// must not wait for hundreds of later submissions.
constexpr std::uint32_t submit_chunk = 32;
constexpr std::uint64_t wake_tag = UINT64_MAX;

// Set-up flags that lower the cost per page, dropped one after another on kernels that do not know them.
int open_ring(io_uring& ring, unsigned in_flight) {
  static constexpr unsigned attempts[] = {
#if defined(IORING_SETUP_DEFER_TASKRUN)
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
#endif
#if defined(IORING_SETUP_COOP_TASKRUN)
    IORING_SETUP_COOP_TASKRUN,
#endif
    0
  };
  int status = -EINVAL;
  for (const unsigned flags : attempts) {
    io_uring_params params{};
    params.flags = flags | IORING_SETUP_CQSIZE;
    params.cq_entries = std::max(in_flight, 4 * submit_chunk);  // more than can be outstanding: none is ever dropped
    if ((status = io_uring_queue_init_params(2 * submit_chunk, &ring, &params)) != -EINVAL) return status;
  }
  return status;
}

class UringSource final : public PageSource {
 public:
  UringSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header, options.direct ? OpenDisks::Access::direct : OpenDisks::Access::page_cache),
        pool_(pool),
        options_(options),
        readers_(disks_.count() * static_cast<std::size_t>(options.threads)) {
    if (options.queue_depth < 1 || options.queue_depth > 8192)
      throw UsageError(fmt::format("source uring: queue depth {}; use from 1 to 8192", options.queue_depth));
    if (const IoUringSupport io = probe_io_uring(); !io.usable)
      throw EnvironmentError("io_uring is refused: " + io.reason + "; or use source 'pread', which the results label");
    fixed_buffers_ = decide_registration();
    try {
      for (std::size_t i = 0; i < readers_.size(); ++i) start(i);
    } catch (...) {
      stop();
      throw;
    }
  }

  ~UringSource() override { stop(); }

  void submit(ReadBatch& batch) override {
    deal_batch(batch, disks_, static_cast<std::uint32_t>(options_.threads),
               [&](std::uint32_t disk, std::uint32_t thread, const Share& share) {
                 Reader& reader = readers_[disk * static_cast<std::uint32_t>(options_.threads) + thread];
                 reader.queue.push(share);
                 wake(reader);
               });
  }

  std::string describe() const override {
    return fmt::format("io_uring {}, {} thread(s) x {} disk(s), {}", options_.direct ? "O_DIRECT" : "through the page cache",
                       options_.threads, disks_.count(),
                       fixed_buffers_ ? "registered buffers" : "buffers not registered" + unregistered_reason_);
  }
  std::size_t registered_bytes() const override { return fixed_buffers_ ? pool_.bytes() * readers_.size() : 0; }

 private:
  struct Reader {
    std::uint32_t disk = 0;
    ShareQueue queue;
    int wake_fd = -1;
    io_uring ring{};
    bool ring_open = false;
    int setup_status = 0;
    const char* setup_step = "";
    Doorbell ready;
    std::unique_ptr<Task> task;
    std::vector<Share> active;         // shares with reads to submit or in flight, oldest first; slots are reused
    std::vector<std::uint32_t> order;  // indices of `active` in arrival order
    std::uint32_t in_flight = 0;
    std::uint64_t wake_count = 0;
  };

  bool decide_registration() {
    if (options_.registration == Registration::off) return false;
    raise_memlock_limit();
    const std::size_t needed = pool_.bytes() * readers_.size();
    try {
      require_memlock(needed,
                      fmt::format("registering {} page buffers with {} io_uring ring(s)", pool_.buffers(), readers_.size()));
      return true;
    } catch (const EnvironmentError&) {
      if (options_.registration == Registration::required) throw;
      unregistered_reason_ = fmt::format(" (RLIMIT_MEMLOCK is below the {} it takes)", bytes_text(needed));
      return false;
    }
  }

  void start(std::size_t i) {
    Reader& reader = readers_[i];
    reader.disk = static_cast<std::uint32_t>(i / static_cast<std::size_t>(options_.threads));
    reader.active.resize(64);
    reader.order.reserve(64);
    reader.wake_fd = ::eventfd(0, EFD_CLOEXEC);
    if (reader.wake_fd < 0) throw_errno("eventfd");
    TaskOptions task;
    if (!options_.cpus.empty()) task.cpu = options_.cpus[i % options_.cpus.size()];
    const std::uint32_t seen = reader.ready.count();
    reader.task = thread_executor().start(
        fmt::format("uring-{}", i), [this, &reader] { run(reader); }, task);
    reader.ready.wait(seen);
    if (reader.setup_status < 0)
      throw std::system_error(-reader.setup_status, std::generic_category(),
                              fmt::format("io_uring {} for {}", reader.setup_step, disks_.name(reader.disk)));
  }

  void stop() {
    stop_.store(true, std::memory_order_release);
    for (auto& reader : readers_) {
      if (reader.task) {
        wake(reader);
        reader.task->join();
      }
      if (reader.wake_fd >= 0) ::close(reader.wake_fd);
    }
  }

  static void wake(Reader& reader) {
    const std::uint64_t one = 1;
    // Only a counter at its maximum could refuse, and then the reader is awake anyway.
    [[maybe_unused]] const ssize_t written = ::write(reader.wake_fd, &one, sizeof one);
  }

  // The ring belongs to its thread (single issuer), so the thread opens it.
  int set_up(Reader& reader) {
    reader.setup_step = "set-up";
    if (const int status = open_ring(reader.ring, options_.queue_depth + 1); status < 0) return status;
    reader.ring_open = true;
    reader.setup_step = "file registration";
    const int fd = disks_.descriptor(reader.disk);
    if (const int status = io_uring_register_files(&reader.ring, &fd, 1); status < 0) return status;
    if (!fixed_buffers_) return 0;
    reader.setup_step = "buffer registration";
    // The kernel takes at most 1 GiB a buffer.
    constexpr std::size_t largest = std::size_t{1} << 30;
    std::vector<iovec> regions;
    for (std::size_t at = 0; at < pool_.bytes(); at += largest)
      regions.push_back({pool_.base() + at, std::min(largest, pool_.bytes() - at)});
    return io_uring_register_buffers(&reader.ring, regions.data(), static_cast<unsigned>(regions.size()));
  }

  void run(Reader& reader) {
    reader.setup_status = set_up(reader);
    reader.ready.ring();
    if (reader.setup_status < 0) {
      if (reader.ring_open) io_uring_queue_exit(&reader.ring);
      return;
    }
    arm_wake(reader);
    // What was submitted before the end is read before the end.
    while (!stop_.load(std::memory_order_acquire) || reader.in_flight > 0 || !reader.order.empty() ||
           !reader.queue.empty()) {
      take_shares(reader);
      const std::uint32_t prepared = prepare(reader);
      retire_done(reader);
      // With a full chunk there may be more to submit: do not wait then.
      const int status =
          prepared == submit_chunk ? io_uring_submit(&reader.ring) : io_uring_submit_and_wait(&reader.ring, 1);
      if (status < 0 && status != -EINTR && status != -EAGAIN && status != -EBUSY) fail_all(reader, -status);
      reap(reader);
      retire_done(reader);
    }
    io_uring_queue_exit(&reader.ring);
  }

  void arm_wake(Reader& reader) {
    io_uring_sqe* sqe = io_uring_get_sqe(&reader.ring);
    io_uring_prep_read(sqe, reader.wake_fd, &reader.wake_count, sizeof reader.wake_count, 0);
    io_uring_sqe_set_data64(sqe, wake_tag);
  }

  void take_shares(Reader& reader) {
    Share share;
    while (reader.order.size() < reader.active.size() && reader.queue.pop(share)) {
      const auto free = std::find_if(reader.active.begin(), reader.active.end(), [](const Share& s) { return !s.batch; });
      *free = share;
      reader.order.push_back(static_cast<std::uint32_t>(free - reader.active.begin()));
    }
  }

  // Oldest share first: layer 1's pages are on their way before any of layer 14's.
  std::uint32_t prepare(Reader& reader) {
    std::uint32_t prepared = 0;
    for (const std::uint32_t index : reader.order) {
      Share& share = reader.active[index];
      ReadBatch& batch = *share.batch;
      while (prepared < submit_chunk && reader.in_flight < options_.queue_depth) {
        const std::uint32_t i = share.next(disks_);
        if (i == UINT32_MAX) break;
        note_submission(batch);
        io_uring_sqe* sqe = io_uring_get_sqe(&reader.ring);
        const PageRead read = batch.reads[i];
        std::byte* page = pool_.page(read.buffer);
        const std::uint64_t offset = disks_.offset(*batch.segment, read.page);
        if (fixed_buffers_)
          io_uring_prep_read_fixed(sqe, 0, page, disks_.page_bytes(), offset,
                                   static_cast<int>(static_cast<std::size_t>(page - pool_.base()) >> 30));
        else
          io_uring_prep_read(sqe, 0, page, disks_.page_bytes(), offset);
        sqe->flags |= IOSQE_FIXED_FILE;
        io_uring_sqe_set_data64(sqe, std::uint64_t{index} << 32 | i);
        ++share.outstanding;
        ++reader.in_flight;
        ++prepared;
      }
    }
    return prepared;
  }

  void reap(Reader& reader) {
    io_uring_cqe* cqe = nullptr;
    while (io_uring_peek_cqe(&reader.ring, &cqe) == 0) {
      const std::uint64_t tag = io_uring_cqe_get_data64(cqe);
      const int result = cqe->res;
      io_uring_cqe_seen(&reader.ring, cqe);
      if (tag == wake_tag) {
        if (!stop_.load(std::memory_order_acquire)) arm_wake(reader);
        continue;
      }
      arrived(reader, static_cast<std::uint32_t>(tag >> 32), static_cast<std::uint32_t>(tag), result);
    }
  }

  void arrived(Reader& reader, std::uint32_t index, std::uint32_t i, int result) {
    Share& share = reader.active[index];
    ReadBatch& batch = *share.batch;
    end_read(batch, i, result, pool_.page(batch.reads[i].buffer), disks_, options_);
    --reader.in_flight;
    --share.outstanding;
  }

  // Ends the shares of which everything was submitted and has arrived.
  void retire_done(Reader& reader) {
    std::erase_if(reader.order, [&](std::uint32_t index) {
      Share& share = reader.active[index];
      if (share.outstanding > 0 || share.cursor < share.batch->reads.size()) return false;
      ReadBatch& batch = *share.batch;
      share = Share{};
      finish_share(batch, monotonic_clock().now());
      return true;
    });
  }

  // The ring itself refuses work (it was killed, or memory ran out): what is not yet submitted fails, what is in flight
  // completes.
  void fail_all(Reader& reader, int error) {
    for (const std::uint32_t index : reader.order) {
      Share& share = reader.active[index];
      for (std::uint32_t i; (i = share.next(disks_)) != UINT32_MAX;) {
        share.batch->faults[i] = PageFault::io;
        share.batch->errors[i] = error;
      }
    }
  }

  OpenDisks disks_;
  const PagePool& pool_;
  SourceOptions options_;
  std::vector<Reader> readers_;
  std::atomic<bool> stop_{false};
  bool fixed_buffers_ = false;
  std::string unregistered_reason_;
};

}  // namespace

std::unique_ptr<PageSource> make_uring_source(const ImageHeader& header, const PagePool& pool,
                                              const SourceOptions& options) {
  return std::make_unique<UringSource>(header, pool, options);
}

}  // namespace slacktier
