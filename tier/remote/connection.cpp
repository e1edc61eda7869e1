#include "tier/remote/connection.hpp"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "tier/image/header_area.hpp"
#include "tier/remote/address.hpp"

namespace slacktier {

using namespace protocol;

namespace {

[[noreturn]] void lost(const std::string& server, int error) {
  throw std::system_error(error, std::generic_category(), server);
}

[[noreturn]] void foreign(const std::string& server, const std::string& what) {
  throw UsageError(fmt::format("{}: {}; is slacktier-tier serve what listens there?", server, what));
}

}  // namespace

Connection::Connection(const std::string& server, View key, const Wanted& wanted, Nanos timeout) : server_(server) {
  const Nanos deadline = monotonic_clock().now() + timeout;
  socket_ = connect_to(server, timeout);
  try {
    Nonce own{};
    if (::getrandom(own.data(), own.size(), 0) != static_cast<ssize_t>(own.size())) throw_errno("getrandom");
    send(encode(Type::hello, 0, own), deadline);
    const Received challenge = receive(deadline);
    const auto theirs = decode_nonce(challenge.payload);
    if (challenge.type != Type::challenge || !theirs) foreign(server, "answers a hello with something else");
    const Bytes covered = encode_wanted(wanted);
    const View reader_parts[] = {own, *theirs, covered};
    send(encode(Type::proof, 0, encode_proof({prove(key, "reader", reader_parts), wanted})), deadline);
    const Received answer = receive(deadline);
    const auto welcome = decode_welcome(answer.payload);
    if (answer.type != Type::welcome || !welcome) foreign(server, "answers a proof with something else");
    const View server_parts[] = {own, *theirs, covered, std::as_bytes(std::span(welcome->image))};
    if (!equal(welcome->mac, prove(key, "server", server_parts)))
      throw UsageError(fmt::format("{}: the server does not hold this key: it is not the one you mean", server));
    try {
      image_ = header_from_json(nlohmann::json::parse(welcome->image));
    } catch (const std::exception& error) {
      foreign(server, fmt::format("its table's header cannot be read: {}", error.what()));
    }
    image_.paths = {server};
  } catch (...) {
    close();
    throw;
  }
}

Connection& Connection::operator=(Connection&& other) noexcept {
  close();
  server_ = std::move(other.server_);
  socket_ = std::exchange(other.socket_, -1);
  image_ = std::move(other.image_);
  return *this;
}

void Connection::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Connection::send(View frame, Nanos deadline) {
  while (!frame.empty()) {
    const ssize_t sent = ::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      frame = frame.subspan(static_cast<std::size_t>(sent));
      continue;
    }
    // A refusal may lie unread where sending fails: it says more than the reset.
    if (errno == EPIPE || errno == ECONNRESET) return;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) lost(server_, errno);
    if (!wait_for_socket(socket_, true, deadline)) lost(server_, ETIMEDOUT);
  }
}

Connection::Received Connection::receive(Nanos deadline) {
  Bytes input;
  std::size_t needed = frame_header_bytes;
  for (;;) {
    const std::size_t at = input.size();
    input.resize(needed);
    const ssize_t got = ::recv(socket_, input.data() + at, needed - at, 0);
    input.resize(at + (got > 0 ? static_cast<std::size_t>(got) : 0));
    if (got == 0) lost(server_, ECONNRESET);
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN) lost(server_, errno);
      if (!wait_for_socket(socket_, false, deadline)) lost(server_, ETIMEDOUT);
      continue;
    }
    const Parsed parsed = parse_frame(input);
    if (parsed.state == Parsed::State::bad) foreign(server_, parsed.problem);
    if (parsed.state == Parsed::State::more) {
      needed = std::max(parsed.bytes, frame_header_bytes);
      continue;
    }
    if (parsed.frame.type == Type::refuse) {
      const auto refused = decode_refused(parsed.frame.payload);
      throw UsageError(fmt::format("{}: refused: {}", server_, refused ? refused->message : "a reason that cannot be read"));
    }
    if (parsed.frame.version != protocol::version)
      throw UsageError(fmt::format("{}: speaks version {} of the protocol, this reader version {}; update the older one",
                                   server_, parsed.frame.version, protocol::version));
    return {parsed.frame.type, parsed.frame.id, {parsed.frame.payload.begin(), parsed.frame.payload.end()}};
  }
}

}  // namespace slacktier
