// Serves a table in memory to readers on other nodes over TCP: one thread, any number of readers, none of which can stall
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "platforms/clock.hpp"
#include "tier/protocol.hpp"
#include "tier/served_table.hpp"

namespace slacktier {

struct ServerOptions {
  std::string listen;                                 // "host:port"; port 0: any free one
  std::vector<std::byte> key;                         // see load_key
  Nanos handshake_timeout = 5'000'000'000;            // from a connection until its key is proved
  Nanos idle_timeout = 60'000'000'000;                // without a byte either way; readers ping every 10 s
  std::uint32_t most_clients = 1024;                  // connections at once; more are refused
  std::string rdma_device;                            // "": no RDMA; "auto": the first with an active port
  int gid_index = -1;                                 // of that device; -1: the best
  ServedTable::ProgressCall registering;              // bytes registered with the device; may be empty
  std::function<void(protocol::Attached&)> announce;  // may change what readers are told of memory and queues: for tests
  std::function<void(const std::string&)> log;        // a line for each reader that comes, goes or is refused; may be empty
};

struct ServerMetrics {
  std::uint64_t clients = 0;   // that have proved the key and are there now
  std::uint64_t accepted = 0;  // connections since the start
  std::uint64_t refused = 0, dropped = 0;
  std::uint64_t requests = 0, pages = 0, bytes = 0;
};

// The RDMA device that a server of this name uses ("auto": the first with an active port). Throws EnvironmentError.
std::string find_rdma_device(const std::string& name);

class TableServer {
 public:
  // Listens from now on. Throws UsageError (address), EnvironmentError (not this machine's, in use; no RDMA device, memory
  // that cannot be registered).
  TableServer(const ServedTable& table, ServerOptions options);
  ~TableServer();
  TableServer(const TableServer&) = delete;
  TableServer& operator=(const TableServer&) = delete;

  const std::string& address() const;  // with the real port
  std::string describe_rdma() const;   // device, GID and MTU in effect; empty without RDMA
  // Serves until `stop` returns true, which is asked at least ten times a second, then closes all connections. Throws
  // std::system_error when the system refuses what a server needs.
  void run(const std::function<bool()>& stop);
  ServerMetrics metrics() const;  // from any thread

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace slacktier
