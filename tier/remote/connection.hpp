// A reader's connection to one server: the handshake, and whole frames with a deadline. Private to tier.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "platforms/clock.hpp"
#include "tier/image.hpp"
#include "tier/protocol.hpp"

namespace slacktier {

class Connection {
 public:
  Connection() = default;
  // Connects and proves the key, both ways. Throws UsageError naming the server and why it refuses, or that it does not
  // hold the key or speaks another protocol; std::system_error when it cannot be reached or ends the connection.
  Connection(const std::string& server, protocol::View key, const protocol::Wanted& wanted, Nanos timeout);
  Connection(Connection&& other) noexcept { *this = std::move(other); }
  Connection& operator=(Connection&& other) noexcept;
  ~Connection() { close(); }

  bool open() const { return socket_ >= 0; }
  void close();
  int socket() const { return socket_; }
  const std::string& server() const { return server_; }
  // Of what the server holds; its path is the server.
  const ImageHeader& image() const { return image_; }

  // One frame out, one in. Throw std::system_error (ETIMEDOUT, ECONNRESET, ...) or UsageError for a refusal.
  void send(protocol::View frame, Nanos deadline);
  struct Received {
    protocol::Type type;
    std::uint32_t id;
    protocol::Bytes payload;
  };
  Received receive(Nanos deadline);

 private:
  std::string server_;
  int socket_ = -1;
  ImageHeader image_;
};

}  // namespace slacktier
