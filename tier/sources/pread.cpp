// Page source `pread`: one blocking direct read at a time on each thread. The labelled fallback where io_uring is refused.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "platforms/executor.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {
namespace {

class PreadSource final : public PageSource {
 public:
  PreadSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : disks_(header),
        pool_(pool),
        options_(options),
        readers_(disks_.count() * static_cast<std::size_t>(options.threads)) {
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      TaskOptions task;
      if (!options.cpus.empty()) task.cpu = options.cpus[i % options.cpus.size()];
      readers_[i].task = thread_executor().start(
          fmt::format("pread-{}", i), [this, i] { run(readers_[i]); }, task);
    }
  }

  ~PreadSource() override {
    stop_.store(true, std::memory_order_release);
    for (auto& reader : readers_) reader.doorbell.ring();
    for (auto& reader : readers_) reader.task->join();
  }

  void submit(ReadBatch& batch) override {
    deal_batch(batch, disks_, static_cast<std::uint32_t>(options_.threads),
               [&](std::uint32_t disk, std::uint32_t thread, const Share& share) {
                 Reader& reader = readers_[disk * static_cast<std::uint32_t>(options_.threads) + thread];
                 reader.queue.push(share);
                 reader.doorbell.ring();
               });
  }

  std::string describe() const override {
    return fmt::format("pread O_DIRECT, {} thread(s) x {} disk(s), one read at a time each", options_.threads,
                       disks_.count());
  }

 private:
  struct Reader {
    ShareQueue queue;
    Doorbell doorbell;
    std::unique_ptr<Task> task;
  };

  void run(Reader& reader) {
    std::uint32_t seen = 0;
    for (;;) {
      Share share;
      while (reader.queue.pop(share)) read_share(share);
      if (stop_.load(std::memory_order_acquire)) return;
      seen = reader.doorbell.wait(seen);
    }
  }

  void read_share(Share& share) {
    ReadBatch& batch = *share.batch;
    for (std::uint32_t i; (i = share.next(disks_)) != UINT32_MAX;) {
      if (Nanos none = 0; batch.submitted.load(std::memory_order_relaxed) == 0)
        batch.submitted.compare_exchange_strong(none, monotonic_clock().now());
      const PageRead read = batch.reads[i];
      std::byte* page = pool_.page(read.buffer);
      ssize_t got;
      do {
        got = ::pread(disks_.descriptor(share.disk), page, disks_.page_bytes(),
                      static_cast<off_t>(disks_.offset(*batch.segment, read.page)));
      } while (got < 0 && errno == EINTR);
      const bool whole = got == static_cast<ssize_t>(disks_.page_bytes());
      batch.errors[i] = whole ? 0 : got < 0 ? errno : EIO;
      batch.faults[i] = whole ? disks_.check(*batch.segment, read.page, page, options_.verify_checksum) : PageFault::io;
    }
    finish_share(batch, monotonic_clock().now());
  }

  OpenDisks disks_;
  const PagePool& pool_;
  SourceOptions options_;
  std::vector<Reader> readers_;
  std::atomic<bool> stop_{false};
};

}  // namespace

std::unique_ptr<PageSource> make_pread_source(const ImageHeader& header, const PagePool& pool,
                                              const SourceOptions& options) {
  return std::make_unique<PreadSource>(header, pool, options);
}

}  // namespace slacktier
