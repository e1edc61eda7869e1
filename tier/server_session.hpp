// One reader's connection as the server sees it, without the socket: bytes come in, pieces of memory go out. Everything that
// a reader can send ends here, so this is what is fuzzed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tier/protocol.hpp"
#include "tier/served_table.hpp"

namespace slacktier {

// What a reader holds of a server beside its connection, as long as that lasts.
class RemoteGrant {
 public:
  virtual ~RemoteGrant() = default;
};

// What all sessions of a server share. The references outlive them.
struct SessionFacts {
  const ServedTable& table;
  std::span<const std::byte> key;
  std::function<std::string()> metrics;  // JSON text
  // Gives a reader queue pairs; empty: there is no RDMA. What it throws is told to the reader.
  std::function<std::unique_ptr<RemoteGrant>(const protocol::Attach&, protocol::Attached&)> attach;
};

struct SessionCounts {
  std::uint64_t requests = 0, pages = 0, bytes = 0;
};

class ServerSession {
 public:
  // hello: nothing came yet; proof: challenged; serving: the key is proved; over: what is pending is all that will be sent.
  enum class State { hello, proof, serving, over };

  // `own`: random bytes of this session's challenge.
  ServerSession(const SessionFacts& facts, const protocol::Nonce& own) : facts_(facts), own_(own) {}

  // Takes what the reader sent, whatever it is. Never throws but for memory; at most one frame is held.
  void received(protocol::View bytes);
  // Ends the session with a refusal.
  void refuse(protocol::Refusal code, const std::string& message);

  // False while so much is to be sent that nothing more should be taken.
  bool wants_input() const { return state_ != State::over && pending_ < most_pending; }
  std::size_t pending() const { return pending_; }  // bytes to be sent
  // The next pieces to send, at most to.size() of them; sent(n) drops their first n bytes.
  std::size_t pieces(std::span<protocol::View> to) const;
  void sent(std::size_t bytes);

  State state() const { return state_; }
  const std::string& refusal() const { return refusal_; }  // why it was ended; empty: it was not
  const SessionCounts& counts() const { return counts_; }

 private:
  static constexpr std::size_t most_pending = std::size_t{16} << 20;

  void handle(const protocol::Frame& frame);
  void prove(const protocol::Frame& frame);
  void read(const protocol::Frame& frame);
  void attach(const protocol::Frame& frame);
  void reply(protocol::Type type, std::uint32_t id, protocol::View payload);
  void send(protocol::View memory);

  const SessionFacts& facts_;
  protocol::Nonce own_, theirs_{};
  State state_ = State::hello;
  std::string refusal_;
  SessionCounts counts_;
  std::unique_ptr<RemoteGrant> grant_;
  protocol::Bytes input_;
  std::deque<protocol::Bytes> owned_;  // frames that pieces point into, oldest first
  struct Piece {
    protocol::View bytes;
    bool owned = false;
  };
  std::deque<Piece> out_;
  std::size_t pending_ = 0;
};

// What a reader wants that this table is not; empty: nothing.
std::string difference(const protocol::Wanted& wanted, const ImageHeader& header);

}  // namespace slacktier
