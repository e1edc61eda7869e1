#include "tier/remote/rdma_server.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

// A multiple of every page size, so that no page lies in two chunks; small enough for a progress bar to move.
constexpr std::size_t chunk_bytes = std::size_t{256} << 20;

struct QueuePairs final : RemoteGrant {
  std::vector<QueuePair> pairs;
};

}  // namespace

RdmaServer::RdmaServer(const ServedTable& table, const std::string& device, int gid_index,
                       const ServedTable::ProgressCall& progress)
    : device_(device, gid_index), queue_(ibv_create_cq(device_.context(), 1, nullptr, nullptr, 0)) {
  if (!queue_) throw EnvironmentError(fmt::format("RDMA: a completion queue is refused: {}", std::strerror(errno)));
  auto* const memory = const_cast<std::byte*>(table.data());  // the adapter reads it only: so says its access
  for (std::size_t at = 0; at < table.bytes(); at += chunk_bytes) {
    const std::size_t bytes = std::min(chunk_bytes, table.bytes() - at);
    regions_.push_back(device_.region(memory + at, bytes, IBV_ACCESS_REMOTE_READ));
    chunks_.push_back({reinterpret_cast<std::uintptr_t>(memory + at), bytes, regions_.back()->rkey});
    if (progress) progress(at + bytes, table.bytes());
  }
  if (chunks_.size() > protocol::most_chunks)
    throw UsageError(
        fmt::format("{} bytes are more than one server hands out over RDMA: serve fewer layers or ranks", table.bytes()));
}

std::unique_ptr<RemoteGrant> RdmaServer::attach(const protocol::Attach& reader, protocol::Attached& answer) {
  const VerbsPort& own = device_.port();
  if (const std::string what = gid_difference(own, reader.gid, reader.kind); !what.empty()) throw UsageError(what);
  answer.gid = own.gid;
  answer.kind = own.kind;
  answer.lid = own.lid;
  answer.mtu = std::min(own.mtu, reader.mtu);
  answer.depth = static_cast<std::uint8_t>(std::min<std::uint32_t>(device_.read_depth_as_server(), reader.depth));
  answer.memory = chunks_;
  auto grant = std::make_unique<QueuePairs>();
  for (const protocol::QueueEnd& end : reader.queues) {
    grant->pairs.push_back(device_.queue_pair(queue_.get(), 1, IBV_ACCESS_REMOTE_READ));
    const std::uint32_t sequence = random_sequence();
    connect_queue_pair(grant->pairs.back().get(), own, {reader.gid, reader.lid, end.number, end.sequence}, answer.mtu,
                       sequence, answer.depth);
    answer.queues.push_back({grant->pairs.back()->qp_num, sequence});
  }
  return grant;
}

}  // namespace slacktier
