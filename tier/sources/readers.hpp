// Threads that read one page after another: what the sources without a queue of their own in the kernel share. Private to
// tier.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "platforms/executor.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {

// Reads the pages of a share one after another and ends it. read(page number, buffer) gives the bytes that came, or -errno.
template <class Read>
void read_pages(Share& share, const OpenDisks& disks, const PagePool& pool, const SourceOptions& options, const Read& read) {
  ReadBatch& batch = *share.batch;
  for (std::uint32_t i; (i = share.next(disks)) != UINT32_MAX;) {
    note_submission(batch);
    std::byte* const buffer = pool.page(batch.reads[i].buffer);
    end_read(batch, i, read(batch.reads[i].page, buffer), buffer, disks, options);
  }
  finish_share(batch, monotonic_clock().now());
}
// The same by blocking reads of the files.
inline void read_pages(Share& share, const OpenDisks& disks, const PagePool& pool, const SourceOptions& options) {
  read_pages(share, disks, pool, options, [&](std::uint64_t page, std::byte* buffer) {
    return disks.read(share.disk, *share.batch->segment, page, buffer);
  });
}

class ReaderThreads {
 public:
  // options.threads for each disk, named `name` and a number. `read` reads the pages of a share and ends it; it runs on
  // several threads at once. Throws std::system_error when a thread is refused.
  ReaderThreads(const char* name, const OpenDisks& disks, const SourceOptions& options, std::function<void(Share&)> read);
  ~ReaderThreads();  // after the shares in the queues
  ReaderThreads(const ReaderThreads&) = delete;
  ReaderThreads& operator=(const ReaderThreads&) = delete;

  void submit(ReadBatch& batch);

 private:
  struct Reader {
    ShareQueue queue;
    Doorbell doorbell;
    std::unique_ptr<Task> task;
  };
  void run(Reader& reader);
  void stop();

  const OpenDisks& disks_;
  const std::uint32_t threads_;
  std::function<void(Share&)> read_;
  std::vector<Reader> readers_;
  std::atomic<bool> stop_{false};
};

}  // namespace slacktier
