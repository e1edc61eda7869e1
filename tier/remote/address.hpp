// A host and port as text, and sockets that bind or connect to it. Private to tier.
#pragma once

#include <string>
#include <vector>

#include "platforms/clock.hpp"

namespace slacktier {

struct Address {
  std::string host, port;
};
// Throws UsageError naming the text.
Address parse_address(const std::string& text);
// "a,b" taken apart.
std::vector<std::string> split_list(const std::string& list);

// Sockets are non-blocking, without Nagle's delay, and closed by the caller. Throws EnvironmentError when the host has no
// address or the address is not this machine's or in use; `address` becomes what was bound, with the real port.
int listen_at(std::string& address);
// Throws std::system_error with the address: refused, unreachable, no answer in time (ETIMEDOUT).
int connect_to(const std::string& address, Nanos timeout);

// Waits until the socket can be read (or written, too, with `write`); false when `deadline` has passed.
bool wait_for_socket(int socket, bool write, Nanos deadline);

}  // namespace slacktier
