// The server among readers that do not behave: strangers, half-open connections, those that take nothing.
#include "tier/server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/catch.hpp"
#include "tests/unit/tier/remote_bench.hpp"
#include "tier/protocol.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

// A plain, blocking connection.
class Stranger {
 public:
  explicit Stranger(const std::string& address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  ~Stranger() { ::close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  bool send(protocol::View bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  // What comes until the other side ends the connection, at most `most` bytes.
  protocol::Bytes rest(std::size_t most = 1 << 16) {
    protocol::Bytes all;
    std::array<std::byte, 4096> part;
    ssize_t got = 1;
    while (all.size() < most && (got = ::recv(socket_, part.data(), part.size(), 0)) > 0)
      all.insert(all.end(), part.begin(), part.begin() + got);
    return all;
  }
  void proves(const std::string& key) {
    protocol::Nonce own{};
    REQUIRE(send(protocol::encode(protocol::Type::hello, 0, own)));
    const protocol::Bytes challenge = rest(protocol::frame_header_bytes + 32);
    const auto theirs = protocol::decode_nonce(protocol::View(challenge).subspan(protocol::frame_header_bytes));
    REQUIRE(theirs);
    const protocol::Wanted wanted;
    const protocol::Bytes covered = protocol::encode_wanted(wanted);
    const protocol::View parts[] = {own, *theirs, covered};
    const protocol::Proof proof{protocol::prove(load_key(key), "reader", parts), wanted};
    REQUIRE(send(protocol::encode(protocol::Type::proof, 0, protocol::encode_proof(proof))));
  }

 private:
  int socket_;
};

}  // namespace

TEST_CASE("a thousand random bad handshakes leave the server serving", "[server]") {
  RemoteBench bench("tcp");
  RunningServer& server = *bench.server;
  std::mt19937_64 random(3);
  const protocol::Bytes hello = protocol::encode(protocol::Type::hello, 0, protocol::Nonce{});
  for (int i = 0; i < 1000; ++i) {
    Stranger stranger(server.address);
    protocol::Bytes bytes;
    if (random() % 2) bytes = hello;
    const std::size_t n = random() % 300;
    for (std::size_t b = 0; b < n; ++b) bytes.push_back(static_cast<std::byte>(random()));
    if (!bytes.empty() && random() % 2) bytes[random() % bytes.size()] ^= std::byte{4};
    if (!bytes.empty()) stranger.send(bytes);
    if (i % 100 == 0) REQUIRE(bench.read().first == 0);
  }
  REQUIRE(bench.read().first == 0);
  REQUIRE(server.await([](const ServerMetrics& m) { return m.accepted >= 1000 && m.clients == 0; }));
  CHECK(server.metrics().refused > 100);
}

TEST_CASE("readers that are silent or half-open are dropped and stall nobody", "[server]") {
  ServerOptions options;
  options.handshake_timeout = 3'000'000'000;
  options.idle_timeout = 4'000'000'000;
  RemoteBench bench("tcp", options);
  RunningServer& server = *bench.server;
  Stranger silent(server.address), half(server.address), idle(server.address), greedy(server.address);
  REQUIRE(half.send(protocol::encode(protocol::Type::hello, 0, protocol::Nonce{})));
  idle.proves(bench.key);
  // Asks for gigabytes and takes nothing.
  greedy.proves(bench.key);
  protocol::Bytes wanted;
  for (std::size_t i = 0; i < protocol::most_reads; ++i) protocol::append_page_wanted(wanted, {0, 1, whole_page});
  for (int i = 0; i < 3; ++i) greedy.send(protocol::encode(protocol::Type::read, 1, wanted));
  REQUIRE(bench.read().first == 0);
  REQUIRE(server.await([](const ServerMetrics& m) { return m.dropped == 4 && m.clients == 0; }));
  CHECK(silent.rest().empty());
  REQUIRE(bench.read().first == 0);
}

TEST_CASE("too many readers are told so", "[server]") {
  ServerOptions options;
  options.most_clients = 2;
  RemoteBench bench("tcp", options);
  RunningServer& server = *bench.server;
  Stranger first(server.address), second(server.address);
  REQUIRE(server.await([](const ServerMetrics& m) { return m.accepted == 2; }));
  Stranger third(server.address);
  const protocol::Bytes answer = third.rest();
  const protocol::Parsed parsed = protocol::parse_frame(answer);
  REQUIRE(parsed.state == protocol::Parsed::State::frame);
  const auto refused = protocol::decode_refused(parsed.frame.payload);
  REQUIRE(refused);
  CHECK(refused->code == protocol::Refusal::busy);
}

TEST_CASE("a reader of another version is told both versions", "[server]") {
  RemoteBench bench("tcp");
  RunningServer& server = *bench.server;
  Stranger newer(server.address);
  REQUIRE(newer.send(protocol::encode(protocol::Type::hello, 0, protocol::Nonce{}, protocol::version + 1)));
  const protocol::Bytes answer = newer.rest();
  const protocol::Parsed parsed = protocol::parse_frame(answer);
  REQUIRE(parsed.state == protocol::Parsed::State::frame);
  const auto refused = protocol::decode_refused(parsed.frame.payload);
  REQUIRE(refused);
  CHECK(refused->code == protocol::Refusal::other_version);
  CHECK_THAT(refused->message, contains_text("version 1") && contains_text("version 2"));
}

TEST_CASE("a server of another version is named by its reader", "[server]") {
  const ScratchFolder folder;
  RemoteOptions options;
  options.key_file = write_key(folder);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(listener, reinterpret_cast<const sockaddr*>(&at), size) == 0);
  REQUIRE(::listen(listener, 1) == 0);
  REQUIRE(::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) == 0);
  options.connect = "127.0.0.1:" + std::to_string(ntohs(at.sin_port));
  const auto newer = thread_executor().start("newer", [&] {
    const int socket = ::accept(listener, nullptr, nullptr);
    const protocol::Bytes answer = protocol::encode(protocol::Type::challenge, 0, protocol::Nonce{}, protocol::version + 1);
    (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    std::byte end{};
    while (::recv(socket, &end, 1, 0) > 0) continue;  // until the reader goes
    ::close(socket);
  });
  std::string why;
  try {
    open_remote_image(options);
  } catch (const UsageError& error) {
    why = error.what();
  }
  newer->join();
  ::close(listener);
  CHECK_THAT(why, contains_text("version 2") && contains_text("version 1") && contains_text(options.connect));
}

TEST_CASE("metrics are told to those who hold the key", "[server]") {
  RemoteBench bench("tcp");
  RunningServer& server = *bench.server;
  REQUIRE(bench.read().first == 0);
  const std::string text = read_server_metrics(server.address, bench.key);
  CHECK_THAT(text, contains_text("\"pages\":200") && contains_text("\"table\":\"small\""));
}
