// Page source `tcp`: another node's table by requests to its server, over plain sockets. For machines without RDMA, and as
// what `rdma` is compared with.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "tier/remote/address.hpp"
#include "tier/remote/connection.hpp"
#include "tier/remote/remote_pages.hpp"
#include "tier/sources/disks.hpp"

namespace slacktier {
namespace {

constexpr Nanos first_connect = 5'000'000'000, reconnect = 2'000'000'000;  // the latter below a step's watchdog
constexpr Nanos silence = 3'000'000'000;                                   // without a byte from a server that owes pages
constexpr Nanos ping_interval = 10'000'000'000;
constexpr Nanos first_back_off = 20'000'000, last_back_off = 2'000'000'000;
constexpr std::uint32_t pages_per_request = 128;

class TcpSource final : public PageSource {
 public:
  TcpSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : pages_(header, options.remote),
        pool_(pool),
        options_(options),
        threads_(static_cast<std::uint32_t>(options.threads)) {
    for (std::uint32_t s = 0; s < pages_.servers().size(); ++s)
      for (std::uint32_t t = 0; t < threads_; ++t) {
        readers_.push_back(std::make_unique<Reader>());
        readers_.back()->server = s;
        connect(*readers_.back(), first_connect);
        if (t == 0) pages_.learn(s, readers_.back()->connection.image());
      }
    try {
      for (std::size_t i = 0; i < readers_.size(); ++i) {
        TaskOptions task;
        if (!options.cpus.empty()) task.cpu = options.cpus[i % options.cpus.size()];
        readers_[i]->task = thread_executor().start(
            fmt::format("tcp-{}", i), [this, i] { run(*readers_[i]); }, task);
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  ~TcpSource() override { stop(); }

  void submit(ReadBatch& batch) override {
    const std::uint32_t server = pages_.place(*batch.segment).server;
    const std::uint32_t parts = std::min(threads_, static_cast<std::uint32_t>(batch.reads.size()));
    batch.submitted.store(0, std::memory_order_relaxed);
    batch.remaining.store(parts, std::memory_order_release);
    for (std::uint32_t t = 0; t < parts; ++t) {
      Share share;
      share.batch = &batch;
      share.part = t;
      share.parts = parts;
      Reader& reader = *readers_[server * threads_ + t];
      reader.queue.push(share);
      reader.bell.ring();
    }
  }

  std::string describe() const override {
    return fmt::format("tcp sockets (no RDMA), {} granularity, {} connection(s) to each of {}",
                       to_string(options_.remote.granularity), threads_, fmt::join(pages_.servers(), ", "));
  }
  std::string failure() const override {
    const std::lock_guard lock(failure_mutex_);
    return failure_;
  }

 private:
  struct Reader {
    std::uint32_t server = 0;
    ShareQueue queue;
    Doorbell bell;
    Connection connection;
    Nanos back_off = first_back_off, next_try = 0;
    std::uint32_t next_id = 1;
    // Of the share that is being read.
    std::uint32_t begin = 0, end = 0, ended = 0;
    protocol::Bytes requests;
    std::vector<std::uint32_t> lengths;  // bytes of each request's answer
    std::vector<iovec> pieces;           // of the answer that is being received
    std::unique_ptr<Task> task;
  };

  void stop() {
    stop_.store(true, std::memory_order_release);
    for (const auto& reader : readers_) reader->bell.ring();
    for (const auto& reader : readers_)
      if (reader->task) reader->task->join();
  }

  void run(Reader& reader) {
    std::uint32_t seen = 0;
    for (;;) {
      Share share;
      while (reader.queue.pop(share)) read(reader, *share.batch, share.part, share.parts);
      if (stop_.load(std::memory_order_acquire)) return;
      const std::uint32_t rung = reader.bell.wait(seen, ping_interval);
      if (rung == seen && reader.connection.open()) ping(reader);
      seen = rung;
    }
  }

  void connect(Reader& reader, Nanos timeout) {
    reader.connection = Connection(pages_.servers()[reader.server], pages_.key(), pages_.wanted_image(), timeout);
    reader.back_off = first_back_off;
  }

  // An idle reader shows that it is there, and learns that its server has gone.
  void ping(Reader& reader) {
    try {
      const Nanos deadline = monotonic_clock().now() + silence;
      reader.connection.send(protocol::encode(protocol::Type::ping, reader.next_id++, {}), deadline);
      if (reader.connection.receive(deadline).type != protocol::Type::pong) reader.connection.close();
    } catch (const std::exception&) {
      reader.connection.close();
    }
  }

  // Reads are repeatable: a connection that breaks is made anew once within a share, what has not come is asked for again.
  void read(Reader& reader, ReadBatch& batch, std::uint32_t part, std::uint32_t parts) {
    const auto n = static_cast<std::uint64_t>(batch.reads.size());
    reader.begin = reader.ended = static_cast<std::uint32_t>(n * part / parts);
    reader.end = static_cast<std::uint32_t>(n * (part + 1) / parts);
    note_submission(batch);
    int error = 0;
    for (int attempt = 0; attempt < 2 && reader.ended < reader.end; ++attempt) {
      try {
        if (!reader.connection.open()) {
          if (monotonic_clock().now() < reader.next_try) break;
          connect(reader, reconnect);
        }
        exchange(reader, batch);
      } catch (const std::exception& failed) {
        error = note_failure(reader, failed);
        if (!reader.connection.open()) break;  // connecting failed
        reader.connection.close();
      }
    }
    for (; reader.ended < reader.end; ++reader.ended)
      end_read(batch, reader.ended, error ? -error : -ENOTCONN, pool_.page(batch.reads[reader.ended].buffer), pages_,
               options_);
    finish_share(batch, monotonic_clock().now());
  }

  int note_failure(Reader& reader, const std::exception& failed) {
    const auto* system = dynamic_cast<const std::system_error*>(&failed);
    if (!reader.connection.open()) {
      reader.next_try = monotonic_clock().now() + reader.back_off;
      reader.back_off = std::min(2 * reader.back_off, last_back_off);
    }
    const std::lock_guard lock(failure_mutex_);
    failure_ = failed.what();
    return system ? system->code().value() : EPROTO;
  }

  void encode(Reader& reader, const ReadBatch& batch) {
    const std::uint32_t segment = pages_.place(*batch.segment).segment;
    reader.requests.clear();
    reader.lengths.clear();
    for (std::uint32_t first = reader.ended; first < reader.end; first += pages_per_request) {
      const std::uint32_t last = std::min(first + pages_per_request, reader.end);
      const std::size_t head = reader.requests.size();
      const protocol::Bytes frame = protocol::encode(protocol::Type::read, reader.next_id++, {});
      reader.requests.insert(reader.requests.end(), frame.begin(), frame.end());
      const auto payload = static_cast<std::uint32_t>((last - first) * protocol::page_wanted_bytes);
      std::memcpy(reader.requests.data() + head + 8, &payload, sizeof payload);
      std::uint32_t length = 0;
      for (std::uint32_t i = first; i < last; ++i) {
        const PageRead& read = batch.reads[i];
        const std::uint64_t records = pages_.wanted(read);
        protocol::append_page_wanted(reader.requests, {segment, static_cast<std::uint32_t>(read.page), records});
        if (records == whole_page)
          length += pages_.page_bytes();
        else
          for_records(records, pages_.geometry(),
                      [&](std::size_t, std::size_t bytes) { length += static_cast<std::uint32_t>(bytes); });
      }
      reader.lengths.push_back(length);
    }
  }

  // Where the answer to the request of reads [first, last) lands.
  void aim(Reader& reader, const ReadBatch& batch, std::uint32_t first, std::uint32_t last) {
    reader.pieces.clear();
    for (std::uint32_t i = first; i < last; ++i) {
      std::byte* const page = pool_.page(batch.reads[i].buffer);
      const std::uint64_t records = pages_.wanted(batch.reads[i]);
      if (records == whole_page)
        reader.pieces.push_back({page, pages_.page_bytes()});
      else
        for_records(records, pages_.geometry(), [&](std::size_t at, std::size_t bytes) {
          reader.pieces.push_back({page + at, bytes});
        });
    }
  }

  // Sends all requests of the share and takes their answers as they come.
  void exchange(Reader& reader, ReadBatch& batch) {
    const std::uint32_t first_id = reader.next_id;
    encode(reader, batch);
    std::size_t sent = 0;
    for (std::size_t r = 0; r < reader.lengths.size(); ++r) {
      std::array<std::byte, protocol::frame_header_bytes> head;
      iovec whole_head = {head.data(), head.size()};
      receive(reader, {&whole_head, 1}, sent);
      check_head(reader, head, first_id + static_cast<std::uint32_t>(r), reader.lengths[r]);
      const std::uint32_t first = reader.ended, last = std::min(first + pages_per_request, reader.end);
      aim(reader, batch, first, last);
      receive(reader, reader.pieces, sent);
      for (; reader.ended < last; ++reader.ended)
        end_read(batch, reader.ended, static_cast<int>(pages_.page_bytes()), pool_.page(batch.reads[reader.ended].buffer),
                 pages_, options_);
    }
  }

  void check_head(Reader& reader, std::span<const std::byte> head, std::uint32_t id, std::uint32_t length) {
    std::uint16_t type = 0;
    std::uint32_t has_magic = 0, has_id = 0, has_length = 0;
    std::memcpy(&has_magic, head.data(), 4);
    std::memcpy(&type, head.data() + 6, 2);
    std::memcpy(&has_length, head.data() + 8, 4);
    std::memcpy(&has_id, head.data() + 12, 4);
    if (has_magic == protocol::magic && type == static_cast<std::uint16_t>(protocol::Type::pages) && has_id == id &&
        has_length == length)
      return;
    throw std::system_error(EPROTO, std::generic_category(),
                            fmt::format("{}: answers a read with something else", reader.connection.server()));
  }

  // Fills the pieces, in order; what is left of the requests goes out meanwhile.
  void receive(Reader& reader, std::span<iovec> pieces, std::size_t& sent) {
    const int socket = reader.connection.socket();
    const auto fail = [&](int error) {
      throw std::system_error(error, std::generic_category(), reader.connection.server());
    };
    Nanos deadline = monotonic_clock().now() + silence;
    while (!pieces.empty()) {
      if (sent < reader.requests.size()) {
        const ssize_t n = ::send(socket, reader.requests.data() + sent, reader.requests.size() - sent, MSG_NOSIGNAL);
        if (n > 0) sent += static_cast<std::size_t>(n);
        if (n < 0 && errno != EAGAIN && errno != EINTR) fail(errno);
      }
      msghdr message = {};
      message.msg_iov = pieces.data();
      message.msg_iovlen = std::min<std::size_t>(pieces.size(), 1024);
      const ssize_t got = ::recvmsg(socket, &message, 0);
      if (got == 0) fail(ECONNRESET);
      if (got < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) fail(errno);
        if (!wait_for_socket(socket, sent < reader.requests.size(), deadline)) fail(ETIMEDOUT);
        continue;
      }
      deadline = monotonic_clock().now() + silence;
      auto left = static_cast<std::size_t>(got);
      while (left > 0 && !pieces.empty()) {
        iovec& piece = pieces.front();
        const std::size_t n = std::min(left, piece.iov_len);
        piece.iov_base = static_cast<std::byte*>(piece.iov_base) + n;
        piece.iov_len -= n;
        left -= n;
        if (piece.iov_len == 0) pieces = pieces.subspan(1);
      }
    }
  }

  RemotePages pages_;
  const PagePool& pool_;
  SourceOptions options_;
  const std::uint32_t threads_;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<Reader>> readers_;
};

}  // namespace

std::unique_ptr<PageSource> make_tcp_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options) {
  return std::make_unique<TcpSource>(header, pool, options);
}

}  // namespace slacktier
