#include "tier/remote/address.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses resolve(const std::string& text, int flags) {
  const Address address = parse_address(text);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int refused = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); refused != 0)
    throw EnvironmentError(fmt::format("{}: no address is known for '{}': {}", text, address.host, ::gai_strerror(refused)));
  return {found, ::freeaddrinfo};
}

void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

std::string bound_address(int socket, const std::string& asked) {
  sockaddr_storage bound = {};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) throw_errno("getsockname " + asked);
  const std::uint16_t port = bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                                         : reinterpret_cast<const sockaddr_in&>(bound).sin_port;
  return fmt::format("{}:{}", asked.substr(0, asked.rfind(':')), ntohs(port));
}

}  // namespace

int listen_at(std::string& address) {
  const Addresses found = resolve(address, 0);
  int error = 0;
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) {
      error = errno;
      continue;
    }
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(socket, a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket, 128) == 0) {
      no_delay(socket);  // those accepted inherit it
      address = bound_address(socket, address);
      return socket;
    }
    error = errno;
    ::close(socket);
  }
  throw EnvironmentError(
      fmt::format("{}: cannot be listened on: {}; name an address of this machine and a free port (0: any)", address,
                  std::strerror(error)));
}

bool wait_for_socket(int socket, bool write, Nanos deadline) {
  for (;;) {
    pollfd wanted = {socket, static_cast<short>(POLLIN | (write ? POLLOUT : 0)), 0};
    const Nanos left = deadline - monotonic_clock().now();
    if (left <= 0) return false;
    const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<Nanos>(left / 1'000'000 + 1, 1'000'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw_errno("poll");
  }
}

int connect_to(const std::string& address, Nanos timeout) {
  const Addresses found = resolve(address, 0);
  const Nanos deadline = monotonic_clock().now() + timeout;
  int error = ETIMEDOUT;
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    const int socket = ::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket < 0) {
      error = errno;
      continue;
    }
    no_delay(socket);
    int result = ::connect(socket, a->ai_addr, a->ai_addrlen);
    if (result != 0 && errno == EINPROGRESS) {
      errno = ETIMEDOUT;
      if (wait_for_socket(socket, true, deadline)) {
        socklen_t size = sizeof error;
        ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
        errno = error;
        result = error == 0 ? 0 : -1;
      }
    }
    if (result == 0) return socket;
    error = errno;
    ::close(socket);
  }
  throw std::system_error(error, std::generic_category(), fmt::format("{}: no connection", address));
}

}  // namespace slacktier
