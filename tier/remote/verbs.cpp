#include "tier/remote/verbs.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "platforms/error.hpp"
#include "tier/remote/address.hpp"

namespace slacktier {

using protocol::Gid;
using protocol::GidKind;

namespace {

// The device of this name, or the first one with an active port.
VerbsContext open_device(const std::string& name, std::uint8_t& port) {
  int count = 0;
  struct FreeList {
    void operator()(ibv_device** list) const { ibv_free_device_list(list); }
  };
  const std::unique_ptr<ibv_device*, FreeList> list(ibv_get_device_list(&count));
  std::string seen;
  for (int i = 0; list && i < count; ++i) {
    const std::string device = ibv_get_device_name(list.get()[i]);
    seen += (seen.empty() ? "" : ", ") + device;
    if (name != "auto" && name != device) continue;
    VerbsContext context(ibv_open_device(list.get()[i]));
    ibv_device_attr facts = {};
    if (!context || ibv_query_device(context.get(), &facts) != 0) continue;
    for (std::uint8_t p = 1; p <= facts.phys_port_cnt; ++p) {
      ibv_port_attr attributes = {};
      if (ibv_query_port(context.get(), p, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) continue;
      port = p;
      return context;
    }
  }
  if (seen.empty())
    throw EnvironmentError(
        "no RDMA device is here (ibv_devinfo lists none): load its driver, or use source tcp, which needs none");
  throw EnvironmentError(
      fmt::format("no RDMA device {} with an active port; there are {}: see ibv_devinfo, or use source tcp",
                  name == "auto" ? "" : name, seen));
}

std::string gid_text(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  return text;
}
bool is_ipv4(const Gid& gid) {
  static constexpr std::uint8_t prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.data(), prefix, sizeof prefix) == 0;
}
bool is_link_local(const Gid& gid) { return gid[0] == std::byte{0xfe} && (gid[1] & std::byte{0xc0}) == std::byte{0x80}; }
GidKind kind_of(std::uint32_t type) {
  return type == IBV_GID_TYPE_IB ? GidKind::infiniband : type == IBV_GID_TYPE_ROCE_V1 ? GidKind::roce_v1 : GidKind::roce_v2;
}
const char* to_string(GidKind kind) {
  return kind == GidKind::infiniband ? "InfiniBand" : kind == GidKind::roce_v1 ? "RoCE v1" : "RoCE v2";
}
// Routable before local, version 2 before 1: what reaches a server behind a router reaches all others, too.
int score(const ibv_gid_entry& entry) {
  Gid gid;
  std::memcpy(gid.data(), entry.gid.raw, gid.size());
  int points = kind_of(entry.gid_type) == GidKind::roce_v1 ? 0 : 8;
  if (!is_link_local(gid)) points += 4;
  if (is_ipv4(gid)) points += 2;
  return points;
}

[[noreturn]] void refused(const std::string& what, int error) {
  throw EnvironmentError(fmt::format("RDMA: {} is refused: {}", what, std::strerror(error)));
}

}  // namespace

VerbsDevice::VerbsDevice(const std::string& name, int gid_index) : context_(open_device(name, port_.port)) {
  ibv_device_attr facts = {};
  ibv_port_attr attributes = {};
  ibv_query_device(context_.get(), &facts);
  ibv_query_port(context_.get(), port_.port, &attributes);
  read_depth_reader_ = static_cast<std::uint32_t>(std::clamp(facts.max_qp_init_rd_atom, 1, 128));
  read_depth_server_ = static_cast<std::uint32_t>(std::clamp(facts.max_qp_rd_atom, 1, 128));
  most_work_ = static_cast<std::uint32_t>(std::clamp(facts.max_qp_wr, 16, 1024));
  port_.lid = attributes.lid;
  port_.mtu = static_cast<std::uint8_t>(attributes.active_mtu);
  std::vector<ibv_gid_entry> entries(static_cast<std::size_t>(std::clamp(attributes.gid_tbl_len, 1, 1024)));
  const ssize_t found = ibv_query_gid_table(context_.get(), entries.data(), entries.size(), 0);
  const ibv_gid_entry* best = nullptr;
  for (ssize_t i = 0; i < found; ++i) {
    const ibv_gid_entry& entry = entries[static_cast<std::size_t>(i)];
    if (entry.port_num != port_.port) continue;
    if (gid_index >= 0 ? entry.gid_index == static_cast<std::uint32_t>(gid_index)
                       : best == nullptr || score(entry) > score(*best))
      best = &entry;
  }
  const std::string device = ibv_get_device_name(context_->device);
  if (best == nullptr)
    throw EnvironmentError(
        fmt::format("{} port {}: has no GID{}; see ibv_devinfo -v, and give its network device an address", device,
                    port_.port, gid_index >= 0 ? fmt::format(" {}", gid_index) : ""));
  port_.gid_index = static_cast<int>(best->gid_index);
  std::memcpy(port_.gid.data(), best->gid.raw, port_.gid.size());
  port_.kind = kind_of(best->gid_type);
  domain_.reset(ibv_alloc_pd(context_.get()));
  if (!domain_) refused("a protection domain", errno);
  description_ = fmt::format("{} port {}, GID {} ({}, {}), MTU {}", device, port_.port, port_.gid_index,
                             to_string(port_.kind), gid_text(port_.gid), 128 << port_.mtu);
}

MemoryRegion VerbsDevice::region(std::byte* memory, std::size_t bytes, int access) const {
  MemoryRegion region(ibv_reg_mr(domain_.get(), memory, bytes, access));
  if (region) return region;
  const int error = errno;
  rlimit limit = {};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  throw EnvironmentError(fmt::format(
      "RDMA: {} bytes cannot be registered: {}; the limit of locked memory is {}: raise it with "
      "'ulimit -l unlimited' (or memlock in limits.conf, LimitMEMLOCK of the service)",
      bytes, std::strerror(error), limit.rlim_cur == RLIM_INFINITY ? "unlimited" : fmt::format("{} bytes", limit.rlim_cur)));
}

QueuePair VerbsDevice::queue_pair(ibv_cq* queue, std::uint32_t work, int access) const {
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = queue;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = work;
  wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  QueuePair pair(ibv_create_qp(domain_.get(), &wanted));
  if (!pair) refused(fmt::format("a queue pair for {} requests", work), errno);
  ibv_qp_attr to = {};
  to.qp_state = IBV_QPS_INIT;
  to.port_num = port_.port;
  to.qp_access_flags = static_cast<unsigned int>(access);
  if (const int error = ibv_modify_qp(pair.get(), &to, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
      error != 0)
    refused("a queue pair's state INIT", error);
  return pair;
}

std::vector<std::string> parse_rdma_devices(const std::string& names, std::size_t servers) {
  std::vector<std::string> devices = split_list(names);
  if (devices.size() > 1 && devices.size() != servers)
    throw UsageError(fmt::format("{} RDMA devices for {} server(s): name one, or one for each server in --connect's order",
                                 devices.size(), servers));
  return devices;
}

std::string gid_difference(const VerbsPort& own, const Gid& gid, GidKind kind) {
  const auto family = [](const Gid& of) { return is_ipv4(of) ? "IPv4" : is_link_local(of) ? "link-local" : "IPv6"; };
  if (own.kind == kind && (kind == GidKind::infiniband || std::strcmp(family(own.gid), family(gid)) == 0)) return "";
  return fmt::format("the server's GID {} is {} {}, the reader's {} {}: choose GIDs of one kind with --gid-index",
                     own.gid_index, to_string(own.kind), family(own.gid), to_string(kind), family(gid));
}

void connect_queue_pair(ibv_qp* pair, const VerbsPort& own, const RemoteEnd& other, std::uint8_t mtu,
                        std::uint32_t own_sequence, std::uint32_t depth) {
  ibv_qp_attr to = {};
  to.qp_state = IBV_QPS_RTR;
  to.path_mtu = static_cast<ibv_mtu>(mtu);
  to.dest_qp_num = other.number;
  to.rq_psn = other.sequence;
  to.max_dest_rd_atomic = static_cast<std::uint8_t>(depth);
  to.min_rnr_timer = 12;
  to.ah_attr.port_num = own.port;
  to.ah_attr.dlid = other.lid;
  if (own.kind != GidKind::infiniband || other.lid == 0) {
    to.ah_attr.is_global = 1;
    std::memcpy(to.ah_attr.grh.dgid.raw, other.gid.data(), other.gid.size());
    to.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(own.gid_index);
    to.ah_attr.grh.hop_limit = 64;
  }
  int error = ibv_modify_qp(pair, &to,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  if (error != 0)
    refused(fmt::format("a way to GID {} (MTU {}, read depth {})", gid_text(other.gid), 128 << mtu, depth), error);
  to = {};
  to.qp_state = IBV_QPS_RTS;
  to.timeout = 14;  // 67 ms; seven tries
  to.retry_cnt = 7;
  to.rnr_retry = 7;
  to.sq_psn = own_sequence;
  to.max_rd_atomic = static_cast<std::uint8_t>(depth);
  error = ibv_modify_qp(
      pair, &to,
      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  if (error != 0) refused("a queue pair's state RTS", error);
}

std::string describe_completion(ibv_wc_status status) {
  const char* name = "";
  switch (status) {
    case IBV_WC_REM_ACCESS_ERR:
      name = " (IBV_WC_REM_ACCESS_ERR)";
      break;
    case IBV_WC_RETRY_EXC_ERR:
      name = " (IBV_WC_RETRY_EXC_ERR): no answer from the other side";
      break;
    case IBV_WC_WR_FLUSH_ERR:
      name = " (IBV_WC_WR_FLUSH_ERR)";
      break;
    case IBV_WC_LOC_PROT_ERR:
      name = " (IBV_WC_LOC_PROT_ERR)";
      break;
    case IBV_WC_REM_INV_REQ_ERR:
      name = " (IBV_WC_REM_INV_REQ_ERR)";
      break;
    case IBV_WC_REM_OP_ERR:
      name = " (IBV_WC_REM_OP_ERR)";
      break;
    default:
      break;
  }
  return fmt::format("{}{}", ibv_wc_status_str(status), name);
}

int completion_errno(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return 0;
    case IBV_WC_REM_ACCESS_ERR:
      return EACCES;
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return ETIMEDOUT;
    case IBV_WC_WR_FLUSH_ERR:
      return ECONNRESET;
    default:
      return EIO;
  }
}

std::uint32_t random_sequence() {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) throw_errno("getrandom");
  return number & 0xFFFFFF;
}

}  // namespace slacktier
