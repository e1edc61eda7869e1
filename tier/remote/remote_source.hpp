// What the sources that read from other nodes share: a thread for each connection, its handshake, its back-off, and what
// becomes of the reads when it breaks. Private to tier.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platforms/executor.hpp"
#include "tier/remote/connection.hpp"
#include "tier/remote/remote_pages.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {

class RemoteSource : public PageSource {
 public:
  // `linger`: how long a thread that has read looks for more before it sleeps, for waking it takes as long as some reads.
  RemoteSource(const char* name, const ImageHeader& header, const PagePool& pool, const SourceOptions& options,
               Nanos linger = 0);
  void submit(ReadBatch& batch) final;
  std::string failure() const final;

 protected:
  struct Reader {
    virtual ~Reader() = default;
    std::uint32_t server = 0;
    ShareQueue queue;
    Doorbell bell;
    Connection connection;
    Nanos back_off = 0, next_try = 0;
    Nanos heard = 0;  // the server's last word: one-sided reads bring none
    std::uint32_t next_id = 1;
    // Of the share that is being read: reads [ended, end) of its batch are still to come.
    std::uint32_t end = 0, ended = 0;
    std::unique_ptr<Task> task;
  };
  static constexpr Nanos silence = 3'000'000'000;  // of a server that owes pages; below a step's watchdog

  virtual std::unique_ptr<Reader> make_reader() = 0;
  virtual void connected(Reader&) {}     // the handshake is done
  virtual void disconnected(Reader&) {}  // before the connection is closed; nothing may be written into the pool afterwards
  // Brings reads [reader.ended, reader.end), each ended by end_one in order. Throws when the connection is of no more use.
  virtual void exchange(Reader& reader, ReadBatch& batch) = 0;

  // Connects every reader and starts its thread: last in the constructor of a source. Throws what Connection throws.
  void start();
  void stop();  // first in its destructor

  void end_one(Reader& reader, ReadBatch& batch, int result) {
    end_read(batch, reader.ended, result, pool_.page(batch.reads[reader.ended].buffer), pages_, options_);
    ++reader.ended;
  }

  RemotePages pages_;
  const PagePool& pool_;
  const SourceOptions options_;
  const std::uint32_t threads_;

 private:
  void run(Reader& reader);
  void connect(Reader& reader, Nanos timeout);
  void disconnect(Reader& reader);
  void keep_alive(Reader& reader);
  void read(Reader& reader, const Share& share);
  int note_failure(Reader& reader, const std::exception& failed);

  const char* name_;
  const Nanos linger_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace slacktier
