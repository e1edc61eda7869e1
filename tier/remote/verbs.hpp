// RDMA devices through libibverbs, as far as the server and the source `rdma` share it. Private to tier.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tier/protocol.hpp"

namespace slacktier {

template <class Object, int (*destroy)(Object*)>
struct VerbsDeleter {
  void operator()(Object* object) const { destroy(object); }
};
using VerbsContext = std::unique_ptr<ibv_context, VerbsDeleter<ibv_context, ibv_close_device>>;
using ProtectionDomain = std::unique_ptr<ibv_pd, VerbsDeleter<ibv_pd, ibv_dealloc_pd>>;
using MemoryRegion = std::unique_ptr<ibv_mr, VerbsDeleter<ibv_mr, ibv_dereg_mr>>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, VerbsDeleter<ibv_comp_channel, ibv_destroy_comp_channel>>;
using CompletionQueue = std::unique_ptr<ibv_cq, VerbsDeleter<ibv_cq, ibv_destroy_cq>>;
using QueuePair = std::unique_ptr<ibv_qp, VerbsDeleter<ibv_qp, ibv_destroy_qp>>;

// What one end of a connection is called on the network, and how it sends.
struct VerbsPort {
  std::uint8_t port = 1;
  int gid_index = 0;
  protocol::Gid gid{};
  protocol::GidKind kind = protocol::GidKind::roce_v2;
  std::uint16_t lid = 0;
  std::uint8_t mtu = 1;  // as ibv_mtu: 128 << mtu bytes
};

class VerbsDevice {
 public:
  // `name`: of the device, "auto" for the first with an active port. `gid_index` -1: the best by score. Throws
  // EnvironmentError naming what is missing: no device, no active port, no such GID.
  VerbsDevice(const std::string& name, int gid_index);

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  const VerbsPort& port() const { return port_; }
  // "rxe0 port 1, GID 1 (RoCE v2, ::ffff:192.0.2.1), MTU 4096".
  const std::string& describe() const { return description_; }
  std::uint32_t read_depth_as_reader() const { return read_depth_reader_; }  // reads of a queue pair under way at once
  std::uint32_t read_depth_as_server() const { return read_depth_server_; }
  std::uint32_t most_work() const { return most_work_; }  // work requests of a queue

  // Throws EnvironmentError with bytes, limit and command when the memory cannot be pinned.
  MemoryRegion region(std::byte* memory, std::size_t bytes, int access) const;
  // A queue pair on `queue`, in state INIT. Throws EnvironmentError.
  QueuePair queue_pair(ibv_cq* queue, std::uint32_t work, int access) const;

 private:
  VerbsContext context_;
  ProtectionDomain domain_;
  VerbsPort port_;
  std::string description_;
  std::uint32_t read_depth_reader_ = 1, read_depth_server_ = 1, most_work_ = 64;
};

// The devices that a reader of `servers` servers names: one, or "a,b", one for each server. Throws UsageError.
std::vector<std::string> parse_rdma_devices(const std::string& names, std::size_t servers);

// Why two ends cannot speak to each other; empty: they can.
std::string gid_difference(const VerbsPort& own, const protocol::Gid& gid, protocol::GidKind kind);

struct RemoteEnd {
  protocol::Gid gid{};
  std::uint16_t lid = 0;
  std::uint32_t number = 0, sequence = 0;  // of its queue pair; its first packet
};
// INIT to ready to send. `depth`: reads under way at once, in this direction as reader and as server. Throws
// EnvironmentError naming the step that the device refuses.
void connect_queue_pair(ibv_qp* pair, const VerbsPort& own, const RemoteEnd& other, std::uint8_t mtu,
                        std::uint32_t own_sequence, std::uint32_t depth);

// "remote access error (IBV_WC_REM_ACCESS_ERR)", and the errno that comes nearest.
std::string describe_completion(ibv_wc_status status);
int completion_errno(ibv_wc_status status);

std::uint32_t random_sequence();  // 24 bits

}  // namespace slacktier
