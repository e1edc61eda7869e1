#include "tier/sources/readers.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace slacktier {

ReaderThreads::ReaderThreads(const char* name, const OpenDisks& disks, const SourceOptions& options,
                             std::function<void(Share&)> read)
    : disks_(disks),
      threads_(static_cast<std::uint32_t>(options.threads)),
      read_(std::move(read)),
      readers_(std::size_t{disks.count()} * threads_) {
  try {
    for (std::size_t i = 0; i < readers_.size(); ++i) {
      TaskOptions task;
      if (!options.cpus.empty()) task.cpu = options.cpus[i % options.cpus.size()];
      readers_[i].task = thread_executor().start(
          fmt::format("{}-{}", name, i), [this, i] { run(readers_[i]); }, task);
    }
  } catch (...) {
    stop();
    throw;
  }
}

ReaderThreads::~ReaderThreads() { stop(); }

void ReaderThreads::stop() {
  stop_.store(true, std::memory_order_release);
  for (auto& reader : readers_) reader.doorbell.ring();
  for (auto& reader : readers_)
    if (reader.task) reader.task->join();
}

void ReaderThreads::submit(ReadBatch& batch) {
  deal_batch(batch, disks_, threads_, Dealing::beforehand,
             [&](std::uint32_t disk, std::uint32_t thread, const Share& share) {
               Reader& reader = readers_[disk * threads_ + thread];
               reader.queue.push(share);
               reader.doorbell.ring();
             });
}

void ReaderThreads::run(Reader& reader) {
  std::uint32_t seen = 0;
  for (;;) {
    Share share;
    while (reader.queue.pop(share)) read_(share);
    if (stop_.load(std::memory_order_acquire)) return;
    seen = reader.doorbell.wait(seen);
  }
}

}  // namespace slacktier
