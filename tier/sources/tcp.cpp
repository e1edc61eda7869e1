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
#include "tier/remote/address.hpp"
#include "tier/remote/remote_source.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t pages_per_request = 128;

class TcpSource final : public RemoteSource {
 public:
  TcpSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : RemoteSource("tcp", header, pool, options) {
    try {
      start();
    } catch (...) {
      stop();
      throw;
    }
  }
  ~TcpSource() override { stop(); }

  std::string describe() const override {
    return fmt::format("tcp sockets (no RDMA), {} granularity, {} connection(s) to each of {}",
                       to_string(options_.remote.granularity), threads_, fmt::join(pages_.servers(), ", "));
  }

 private:
  struct TcpReader final : Reader {
    protocol::Bytes requests;
    std::vector<std::uint32_t> lengths;  // bytes of each request's answer
    std::vector<iovec> pieces;           // of the answer that is being received
  };
  std::unique_ptr<Reader> make_reader() override { return std::make_unique<TcpReader>(); }

  void encode(TcpReader& reader, const ReadBatch& batch) {
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
  void aim(TcpReader& reader, const ReadBatch& batch, std::uint32_t first, std::uint32_t last) {
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
  void exchange(Reader& base, ReadBatch& batch) override {
    auto& reader = static_cast<TcpReader&>(base);
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
      while (reader.ended < last) end_one(reader, batch, static_cast<int>(pages_.page_bytes()));
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
  void receive(TcpReader& reader, std::span<iovec> pieces, std::size_t& sent) {
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
};

}  // namespace

std::unique_ptr<PageSource> make_tcp_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options) {
  return std::make_unique<TcpSource>(header, pool, options);
}

}  // namespace slacktier
