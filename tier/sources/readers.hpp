// Threads that read one page after another: what the sources without a queue of their own in the kernel share. Private to
// tier.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "platforms/executor.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {

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
