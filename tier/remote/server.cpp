#include "tier/server.hpp"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <vector>

#include "platforms/error.hpp"
#include "tier/remote/address.hpp"
#include "tier/remote/rdma_server.hpp"
#include "tier/server_session.hpp"

namespace slacktier {
namespace {

constexpr Nanos look_interval = 100'000'000;
constexpr Nanos farewell = 1'000'000'000;                 // a reader that was refused may read why
constexpr std::size_t turn_bytes = std::size_t{1} << 20;  // sent to one reader before the next has its turn
constexpr std::size_t input_bytes = 65536;

protocol::Nonce random_nonce() {
  protocol::Nonce nonce{};
  if (::getrandom(nonce.data(), nonce.size(), 0) != static_cast<ssize_t>(nonce.size())) throw_errno("getrandom");
  return nonce;
}

struct Client {
  Client(int connected, std::uint64_t n, const SessionFacts& facts, Nanos now)
      : socket(connected), number(n), session(facts, random_nonce()), since(now), alive(now) {}
  ~Client() { ::close(socket); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int socket;
  std::uint64_t number;
  ServerSession session;
  Nanos since, alive;        // connected; last byte either way
  Nanos farewell_until = 0;  // the session is over and all is sent
  std::uint32_t interest = 0;
  bool serving = false, gone = false;
  SessionCounts counted;
};

}  // namespace

struct TableServer::Parts {
  const ServedTable& table;
  ServerOptions options;
  SessionFacts facts;
  std::unique_ptr<RdmaServer> rdma;
  std::string address;
  int listener = -1, events = -1;
  Nanos paused_until = 0;  // no descriptors left: nobody is accepted for a while
  std::vector<std::unique_ptr<Client>> clients;
  struct Counters {
    std::atomic<std::uint64_t> clients{0}, accepted{0}, refused{0}, dropped{0}, requests{0}, pages{0}, bytes{0};
  } counters;

  Parts(const ServedTable& served, ServerOptions wanted)
      : table(served),
        options(std::move(wanted)),
        facts{table, options.key, [this] { return metrics_text(); }, {}},
        address(options.listen) {
    if (!options.rdma_device.empty()) {
      rdma = std::make_unique<RdmaServer>(table, options.rdma_device, options.gid_index, options.registering);
      facts.attach = [this](const protocol::Attach& reader, protocol::Attached& answer) {
        auto grant = rdma->attach(reader, answer);
        if (options.announce) options.announce(answer);
        return grant;
      };
    }
    listener = listen_at(address);
    events = ::epoll_create1(EPOLL_CLOEXEC);
    if (events < 0) {
      ::close(listener);
      throw_errno("epoll_create1");
    }
    watch_listener(EPOLL_CTL_ADD, true);
  }
  ~Parts() {
    clients.clear();
    ::close(events);
    ::close(listener);
  }

  std::string metrics_text() const {
    return nlohmann::json{
        {"clients", counters.clients.load()}, {"accepted", counters.accepted.load()}, {"refused", counters.refused.load()},
        {"dropped", counters.dropped.load()}, {"requests", counters.requests.load()}, {"pages", counters.pages.load()},
        {"bytes", counters.bytes.load()},     {"table", table.header().table},        {"table_bytes", table.bytes()}}
        .dump();
  }
  void log(const std::string& line) const {
    if (options.log) options.log(line);
  }
  void watch_listener(int operation, bool on) {
    epoll_event event = {};
    event.events = on ? static_cast<std::uint32_t>(EPOLLIN) : 0u;
    event.data.ptr = nullptr;
    ::epoll_ctl(events, operation, listener, &event);
  }
  void watch(Client& client) {
    std::uint32_t wanted = 0;
    if (client.session.wants_input() || client.farewell_until != 0) wanted |= EPOLLIN;
    if (client.session.pending() > 0) wanted |= EPOLLOUT;
    if (wanted == client.interest) return;
    epoll_event event = {};
    event.events = wanted;
    event.data.ptr = &client;
    ::epoll_ctl(events, EPOLL_CTL_MOD, client.socket, &event);
    client.interest = wanted;
  }

  void accept_some(Nanos now) {
    for (int i = 0; i < 16; ++i) {
      const int socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (socket < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
          log("no descriptor or memory is left for another reader (ulimit -n); those that are there are served");
          paused_until = now + look_interval;
          watch_listener(EPOLL_CTL_MOD, false);
        }
        return;
      }
      auto client = std::make_unique<Client>(socket, ++counters.accepted, facts, now);
      epoll_event event = {};
      event.events = client->interest = EPOLLIN;
      event.data.ptr = client.get();
      if (::epoll_ctl(events, EPOLL_CTL_ADD, socket, &event) != 0) continue;
      if (clients.size() >= options.most_clients)
        client->session.refuse(protocol::Refusal::busy,
                               fmt::format("{} readers are connected: no more are taken", clients.size()));
      clients.push_back(std::move(client));
      after(*clients.back(), now);
    }
  }

  void receive(Client& client, Nanos now) {
    std::array<std::byte, input_bytes> input;
    const ssize_t got = ::recv(client.socket, input.data(), input.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      client.gone = true;
      return;
    }
    if (client.farewell_until != 0) return;  // what is still on its way from a refused reader is dropped
    client.alive = now;
    client.session.received({input.data(), static_cast<std::size_t>(got)});
  }

  void send(Client& client, Nanos now) {
    for (std::size_t turn = 0; client.session.pending() > 0 && turn < turn_bytes;) {
      std::array<protocol::View, 64> pieces;
      std::array<iovec, 64> vectors;
      const std::size_t n = client.session.pieces(pieces);
      std::size_t vectors_used = 0;
      for (std::size_t bytes = 0; vectors_used < n && bytes < turn_bytes; ++vectors_used) {
        const protocol::View piece = pieces[vectors_used];
        vectors[vectors_used] = {const_cast<std::byte*>(piece.data()), piece.size()};
        bytes += piece.size();
      }
      msghdr message = {};
      message.msg_iov = vectors.data();
      message.msg_iovlen = vectors_used;
      const ssize_t sent = ::sendmsg(client.socket, &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) {
        client.gone = client.gone || errno != EAGAIN;
        return;
      }
      client.alive = now;
      turn += static_cast<std::size_t>(sent);
      client.session.sent(static_cast<std::size_t>(sent));
    }
  }

  // What follows from the session's state, after anything that may have changed it.
  void after(Client& client, Nanos now) {
    if (!client.gone) send(client, now);
    const SessionCounts& counts = client.session.counts();
    counters.requests += counts.requests - client.counted.requests;
    counters.pages += counts.pages - client.counted.pages;
    counters.bytes += counts.bytes - client.counted.bytes;
    client.counted = counts;
    if (!client.serving && client.session.state() == ServerSession::State::serving) {
      client.serving = true;
      ++counters.clients;
      log(fmt::format("reader {}: connected", client.number));
    }
    if (!client.gone && client.session.state() == ServerSession::State::over && client.farewell_until == 0 &&
        client.session.pending() == 0) {
      ++counters.refused;
      log(fmt::format("reader {}: refused: {}", client.number, client.session.refusal()));
      ::shutdown(client.socket, SHUT_WR);
      client.farewell_until = now + farewell;
    }
    if (!client.gone) watch(client);
  }

  void end(Client& client, const char* why) {
    if (client.gone) return;
    client.gone = true;
    ++counters.dropped;
    log(fmt::format("reader {}: dropped: {}", client.number, why));
  }

  void look_at_times(Nanos now) {
    if (paused_until != 0 && now >= paused_until) {
      paused_until = 0;
      watch_listener(EPOLL_CTL_MOD, true);
    }
    for (const auto& client : clients) {
      if (client->farewell_until != 0)
        client->gone = client->gone || now >= client->farewell_until;
      else if (!client->serving && now - client->since >= options.handshake_timeout)
        end(*client, "no handshake in time");
      else if (now - client->alive >= options.idle_timeout)
        end(*client, "nothing was heard of it, or it takes nothing");
    }
  }

  void sweep() {
    std::erase_if(clients, [&](const auto& client) {
      if (!client->gone) return false;
      if (client->serving) {
        --counters.clients;
        log(fmt::format("reader {}: gone after {} pages", client->number, client->counted.pages));
      }
      return true;
    });
  }
};

std::string find_rdma_device(const std::string& name) {
  return ibv_get_device_name(VerbsDevice(name, -1).context()->device);
}

TableServer::TableServer(const ServedTable& table, ServerOptions options)
    : parts_(std::make_unique<Parts>(table, std::move(options))) {}

TableServer::~TableServer() = default;

const std::string& TableServer::address() const { return parts_->address; }

std::string TableServer::describe_rdma() const { return parts_->rdma ? parts_->rdma->describe() : ""; }

void TableServer::run(const std::function<bool()>& stop) {
  Parts& p = *parts_;
  const Clock& clock = monotonic_clock();
  Nanos next_look = clock.now();
  while (!stop()) {
    std::array<epoll_event, 64> events;
    const int ready = ::epoll_wait(p.events, events.data(), static_cast<int>(events.size()), 100);
    if (ready < 0 && errno != EINTR) throw_errno("epoll_wait");
    const Nanos now = clock.now();
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.ptr == nullptr) {
        p.accept_some(now);
        continue;
      }
      auto& client = *static_cast<Client*>(event.data.ptr);
      if (client.gone) continue;
      if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) p.receive(client, now);
      p.after(client, now);
    }
    if (now >= next_look) {
      p.look_at_times(now);
      next_look = now + look_interval;
    }
    p.sweep();
  }
  for (const auto& client : p.clients) client->gone = true;
  p.sweep();
}

ServerMetrics TableServer::metrics() const {
  const auto& c = parts_->counters;
  return {c.clients, c.accepted, c.refused, c.dropped, c.requests, c.pages, c.bytes};
}

}  // namespace slacktier
