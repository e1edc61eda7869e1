// Page source `uring`: io_uring with O_DIRECT, fixed files and fixed buffers, N threads a disk, each with a ring of its own.
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <exception>

#include "platforms/disk.hpp"
#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/host.hpp"
#include "platforms/io_uring_probe.hpp"
#include "platforms/quantity.hpp"
#include "tier/sources/disks.hpp"
#include "tier/sources/ring.hpp"

namespace slacktier {
namespace {

// SQEs handed to the kernel between two looks at completions: submitting takes about 1 us a page, and a page that arrived
// must not wait for hundreds of later submissions.
constexpr std::uint32_t submit_chunk = 32;
// Pages that may arrive unseen: looking at so many takes less time than waking up for each.
constexpr std::uint32_t wait_chunk = 16;
constexpr std::uint64_t wake_tag = UINT64_MAX;

class UringSource final : public PageSource {
 public:
  UringSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header, options.direct ? OpenDisks::Access::direct : OpenDisks::Access::page_cache),
        pool_(pool),
        options_(options),
        readers_(disks_.count() * static_cast<std::size_t>(options.threads)) {
    if (options.queue_depth < 1 || options.queue_depth > 8192)
      throw UsageError(fmt::format("source uring: queue depth {}; use from 1 to 8192", options.queue_depth));
    depth_ = std::max(1u, options.queue_depth / static_cast<std::uint32_t>(options.threads));
    if (const IoUringSupport io = probe_io_uring(); !io.usable)
      throw EnvironmentError("io_uring is refused: " + io.reason + "; or use source 'pread', which the results label");
    if (options.poll_completions) require_polling(header);
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
    deal_batch(batch, disks_, static_cast<std::uint32_t>(options_.threads), Dealing::in_turns,
               [&](std::uint32_t disk, std::uint32_t thread, const Share& share) {
                 Reader& reader = readers_[disk * static_cast<std::uint32_t>(options_.threads) + thread];
                 reader.queue.push(share);
                 wake(reader);
               });
  }

  std::string describe() const override {
    std::string text = fmt::format("io_uring {}, {} thread(s) x {} disk(s), {}",
                                   options_.direct ? "O_DIRECT" : "through the page cache", options_.threads, disks_.count(),
                                   fixed_buffers_ ? "registered buffers" : "buffers not registered" + unregistered_reason_);
    if (!options_.register_files) text += ", files not registered";
    if (options_.poller_cpu >= 0) text += fmt::format(", submissions polled on CPU {}", options_.poller_cpu);
    if (options_.poll_completions) text += ", completions polled";
    if (const std::string flags = readers_.front().ring.flags(); !flags.empty()) text += ", " + flags;
    return text;
  }
  std::size_t registered_bytes() const override { return fixed_buffers_ ? pool_.bytes() * readers_.size() : 0; }

 private:
  // Where a reader is while it does nothing, and so what wakes it.
  enum class Place : std::uint32_t { working, in_ring, at_doorbell };

  struct Reader {
    std::uint32_t disk = 0;
    ShareQueue queue;
    std::atomic<Place> place{Place::working};
    int wake_fd = -1;
    Doorbell doorbell;
    Ring ring;
    int setup_status = 0;
    Doorbell ready;
    std::unique_ptr<Task> task;
    std::vector<Share> active;         // shares with reads to submit or in flight, oldest first; slots are reused
    std::vector<std::uint32_t> order;  // indices of `active` in arrival order
    std::uint32_t in_flight = 0;
    std::uint64_t wake_count = 0;
    bool wake_armed = false;
  };

  // A driver without queues for it would answer by interrupts, silently.
  void require_polling(const ImageHeader& header) const {
    if (!options_.direct) throw UsageError("source uring: completions are polled with direct I/O only");
    for (const auto& path : header.paths) {
      const PathFacts facts = read_path_facts(path);
      const DiskFacts disk = facts.device ? read_disk_facts(*facts.device) : DiskFacts{};
      if (disk.io_poll.value_or(0) != 1)
        throw EnvironmentError(
            fmt::format("{}: {} has no queues for polled completions; for NVMe give the kernel nvme.poll_queues=4 (kernel "
                        "command line, or "
                        "options nvme poll_queues=4 in /etc/modprobe.d), or do without polling",
                        path, disk.name.empty() ? "its file system" : "disk " + disk.name));
    }
  }

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
    if (reader.setup_status == -EINVAL && options_.poller_cpu >= 0)
      throw EnvironmentError(
          fmt::format("io_uring set-up: CPU {} cannot poll submissions for this process; name one that it "
                      "may run on (taskset -p $$ shows them)",
                      options_.poller_cpu));
    if (reader.setup_status < 0)
      throw std::system_error(-reader.setup_status, std::generic_category(),
                              fmt::format("io_uring {} for {}", reader.ring.failed_step(), disks_.name(reader.disk)));
  }

  void stop() {
    stop_.store(true, std::memory_order_seq_cst);
    for (auto& reader : readers_) {
      if (reader.task) {
        wake(reader);
        reader.task->join();
      }
      if (reader.wake_fd >= 0) ::close(reader.wake_fd);
    }
  }

  // After a share was queued, or stop_ set. The reader says where it is before it looks at both a last time: it finds the
  // share there, or its look, under the queue's lock, came before and so did what it said.
  static void wake(Reader& reader) {
    const Place place = reader.place.load(std::memory_order_seq_cst);
    if (place == Place::at_doorbell) reader.doorbell.ring();
    if (place != Place::in_ring) return;
    const std::uint64_t one = 1;
    // Only a counter at its maximum could refuse, and then the reader is awake anyway.
    [[maybe_unused]] const ssize_t written = ::write(reader.wake_fd, &one, sizeof one);
  }

  // The ring belongs to its thread (single issuer), so the thread opens it.
  int set_up(Reader& reader) {
    RingOptions ring;
    ring.submissions = 2 * submit_chunk;
    ring.completions = std::max(depth_ + 1, 4 * submit_chunk);
    ring.poll_completions = options_.poll_completions;
    ring.poller_cpu = options_.poller_cpu;
    if (&reader != &readers_.front()) ring.share_poller = readers_.front().ring.descriptor();
    if (const int status = reader.ring.open(ring); status < 0) return status;
    if (options_.register_files)
      if (const int status = reader.ring.register_file(disks_.descriptor(reader.disk)); status < 0) return status;
    return fixed_buffers_ ? reader.ring.register_buffers({pool_.base(), pool_.bytes()}) : 0;
  }

  bool has_work(Reader& reader) { return stop_.load(std::memory_order_seq_cst) || !reader.queue.empty(); }

  void run(Reader& reader) {
    reader.setup_status = set_up(reader);
    reader.ready.ring();
    if (reader.setup_status < 0) return;
    // What was submitted before the end is read before the end.
    while (!stop_.load(std::memory_order_acquire) || reader.in_flight > 0 || !reader.order.empty() ||
           !reader.queue.empty()) {
      take_shares(reader);
      const bool more = prepare(reader);
      retire_done(reader);
      if (reader.in_flight == 0 && !more) {
        sleep_idle(reader);
        continue;
      }
      enter(reader, more);
      reap(reader);
      retire_done(reader);
    }
  }

  // Nothing to read: without a word to the ring.
  void sleep_idle(Reader& reader) {
    const std::uint32_t seen = reader.doorbell.count();
    reader.place.store(Place::at_doorbell, std::memory_order_seq_cst);
    if (!has_work(reader)) reader.doorbell.wait(seen);
    reader.place.store(Place::working, std::memory_order_relaxed);
  }

  // Hands over what was prepared and, unless there is more to hand over, waits.
  void enter(Reader& reader, bool more) {
    io_uring* const ring = reader.ring.get();
    int status;
    if (more) {
      status = io_uring_submit(ring);
    } else if (options_.poll_completions) {
      // The wait asks the disk all the time; new work is seen after each page.
      status = io_uring_submit_and_wait(ring, 1);
    } else {
      if (!reader.wake_armed) arm_wake(reader);
      reader.place.store(Place::in_ring, std::memory_order_seq_cst);
      const std::uint32_t wanted = completions_to_await(reader);
      // A table of shares that is full takes nothing more, whatever is queued.
      const bool takes = !reader.queue.empty() && reader.order.size() < reader.active.size();
      status = takes ? io_uring_submit(ring) : io_uring_submit_and_wait(ring, wanted);
      reader.place.store(Place::working, std::memory_order_relaxed);
    }
    if (status < 0 && status != -EINTR && status != -EAGAIN && status != -EBUSY) fail_all(reader, -status);
  }

  // Each wake-up costs several microseconds: it sleeps until there is something to do. While pages are left to submit, that
  // is when a few of those in flight have arrived, so that the disk's queue stays full. Then it is when the oldest batch is
  // in, and no later, however many pages of others are in flight; in halves down to a few, so that stamps are compared
  // meanwhile.
  static std::uint32_t completions_to_await(const Reader& reader) {
    for (const std::uint32_t index : reader.order) {
      const Share& oldest = reader.active[index];
      if (oldest.outstanding == 0) continue;
      if (oldest.left()) return std::clamp(reader.in_flight / 4, 1u, submit_chunk);
      return oldest.outstanding > wait_chunk ? std::max(wait_chunk, oldest.outstanding / 2) : oldest.outstanding;
    }
    return 1;
  }

  void arm_wake(Reader& reader) {
    io_uring_sqe* sqe = io_uring_get_sqe(reader.ring.get());
    if (!sqe) return;
    io_uring_prep_read(sqe, reader.wake_fd, &reader.wake_count, sizeof reader.wake_count, 0);
    io_uring_sqe_set_data64(sqe, wake_tag);
    reader.wake_armed = true;
  }

  void take_shares(Reader& reader) {
    Share share;
    while (reader.order.size() < reader.active.size() && reader.queue.pop(share)) {
      const auto free = std::find_if(reader.active.begin(), reader.active.end(), [](const Share& s) { return !s.batch; });
      *free = share;
      reader.order.push_back(static_cast<std::uint32_t>(free - reader.active.begin()));
    }
  }

  // Oldest share first: layer 1's pages are on their way before any of layer 14's. True when the chunk is full and more
  // could be submitted.
  bool prepare(Reader& reader) {
    io_uring* const ring = reader.ring.get();
    const int file = options_.register_files ? 0 : disks_.descriptor(reader.disk);
    const auto flags = static_cast<std::uint8_t>(options_.register_files ? IOSQE_FIXED_FILE : 0);
    std::uint32_t prepared = 0;
    for (const std::uint32_t index : reader.order) {
      Share& share = reader.active[index];
      ReadBatch& batch = *share.batch;
      while (reader.in_flight < depth_ && share.left()) {
        if (prepared == submit_chunk) return true;
        const std::uint32_t i = share.next(disks_);
        if (i == UINT32_MAX) break;
        io_uring_sqe* sqe = io_uring_get_sqe(ring);
        if (!sqe) {  // a poller has not yet taken what was there
          share.put_back(i);
          return true;
        }
        note_submission(batch);
        const PageRead read = batch.reads[i];
        std::byte* page = pool_.page(read.buffer);
        const std::uint64_t offset = disks_.offset(*batch.segment, read.page);
        if (fixed_buffers_)
          io_uring_prep_read_fixed(sqe, file, page, disks_.page_bytes(), offset,
                                   static_cast<int>(static_cast<std::size_t>(page - pool_.base()) >> 30));
        else
          io_uring_prep_read(sqe, file, page, disks_.page_bytes(), offset);
        sqe->flags |= flags;
        io_uring_sqe_set_data64(sqe, std::uint64_t{index} << 32 | i);
        ++share.outstanding;
        ++reader.in_flight;
        ++prepared;
      }
    }
    return false;
  }

  void reap(Reader& reader) {
    io_uring_cqe* cqe = nullptr;
    unsigned head = 0, seen = 0;
    io_uring_for_each_cqe(reader.ring.get(), head, cqe) {
      ++seen;
      const std::uint64_t tag = io_uring_cqe_get_data64(cqe);
      if (tag == wake_tag)
        reader.wake_armed = false;
      else
        arrived(reader, static_cast<std::uint32_t>(tag >> 32), static_cast<std::uint32_t>(tag), cqe->res);
    }
    io_uring_cq_advance(reader.ring.get(), seen);
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
      if (share.outstanding > 0 || share.left()) return false;
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
  std::uint32_t depth_ = 1;  // reads in flight, of each reader
  bool fixed_buffers_ = false;
  std::string unregistered_reason_;
};

}  // namespace

std::unique_ptr<PageSource> make_uring_source(const ImageHeader& header, const PagePool& pool,
                                              const SourceOptions& options) {
  return std::make_unique<UringSource>(header, pool, options);
}

}  // namespace slacktier
