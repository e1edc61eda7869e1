// Page source `rdma`: one-sided reads of another node's memory through verbs. The server's CPU takes no part in them; a
// connection beside them only says where its memory is and that it is still there.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>

#include "platforms/error.hpp"
#include "tier/remote/remote_source.hpp"
#include "tier/remote/verbs.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t signal_every = 16;  // requests of a queue pair to one completion
constexpr Nanos spin = 400'000;  // looking for completions before sleeping until one comes: a step's reads take less
constexpr Nanos linger = 200'000;
constexpr std::uint32_t looks_a_clock = 32;  // a look costs less than the time of day
constexpr int look_ms = 1;                   // a completion just before its notification is asked for makes no event

class RdmaSource final : public RemoteSource {
 public:
  RdmaSource(const ImageHeader& header, const PagePool& pool, const SourceOptions& options)
      : RemoteSource("rdma", header, pool, options, linger),
        queue_pairs_(static_cast<std::uint32_t>(options.remote.queue_pairs)) {
    for (const std::string& name : parse_rdma_devices(options.remote.device, pages_.servers().size())) {
      adapters_.push_back(std::make_unique<Adapter>(name, options.remote.gid_index));
      Adapter& adapter = *adapters_.back();
      adapter.region = adapter.device.region(pool.base(), pool.bytes(), IBV_ACCESS_LOCAL_WRITE);
      work_ = std::min(adapter.device.most_work(), work_);
    }
    try {
      start();
    } catch (...) {
      stop();
      throw;
    }
  }
  ~RdmaSource() override { stop(); }

  std::string describe() const override {
    std::vector<std::string> adapters;
    for (const auto& adapter : adapters_) {
      const int mtu = 128 << adapter->mtu.load(), own = 128 << adapter->device.port().mtu;
      adapters.push_back(fmt::format("{}{}, read depth {}", adapter->device.describe(),
                                     mtu == own ? "" : fmt::format(" ({} in effect)", mtu), adapter->depth.load()));
    }
    return fmt::format("rdma {}, {} granularity, {} thread(s) x {} queue pair(s) to each of {}", fmt::join(adapters, "; "),
                       to_string(options_.remote.granularity), threads_, queue_pairs_, fmt::join(pages_.servers(), ", "));
  }
  std::size_t registered_bytes() const override { return 0; }  // the pool, which is counted as what it is

 private:
  struct Adapter {
    Adapter(const std::string& name, int gid_index) : device(name, gid_index) {}
    const VerbsDevice device;
    MemoryRegion region;                          // the page pool
    std::atomic<std::uint32_t> depth{0}, mtu{0};  // as agreed with the server that answered last
  };
  struct Posted {
    std::uint32_t read = 0;
    bool last = false;  // of its read
  };
  struct Queue {
    QueuePair pair;
    std::vector<ibv_send_wr> work;
    std::vector<ibv_sge> targets;
    std::deque<Posted> posted;          // oldest first
    std::uint64_t first = 0, next = 0;  // number of the oldest posted, of the next to be
    std::uint32_t number = 0;
  };
  struct VerbsReader final : Reader {
    std::uint32_t key = 0;  // of the page pool, with its adapter
    CompletionChannel channel;
    CompletionQueue completions;
    std::vector<Queue> queues;
    std::vector<protocol::MemoryChunk> memory;
    std::vector<std::uint8_t> arrived;  // of the share's reads
  };

  std::unique_ptr<Reader> make_reader() override { return std::make_unique<VerbsReader>(); }

  void connected(Reader& base) override {
    auto& reader = static_cast<VerbsReader&>(base);
    Adapter& adapter = *adapters_[reader.server % adapters_.size()];
    const VerbsDevice& device = adapter.device;
    reader.key = adapter.region->lkey;
    reader.channel.reset(ibv_create_comp_channel(device.context()));
    if (!reader.channel) throw EnvironmentError("RDMA: a completion channel is refused");
    reader.completions.reset(
        ibv_create_cq(device.context(), static_cast<int>(work_ * queue_pairs_), nullptr, reader.channel.get(), 0));
    if (!reader.completions) throw EnvironmentError("RDMA: a completion queue is refused");
    protocol::Attach attach;
    const VerbsPort& own = device.port();
    attach.gid = own.gid;
    attach.kind = own.kind;
    attach.lid = own.lid;
    attach.mtu = own.mtu;
    attach.depth = static_cast<std::uint8_t>(device.read_depth_as_reader());
    for (std::uint32_t q = 0; q < queue_pairs_; ++q) {
      Queue queue;
      queue.pair = device.queue_pair(reader.completions.get(), work_, 0);
      queue.number = queue.pair->qp_num;
      queue.work.resize(work_);
      queue.targets.resize(work_);
      attach.queues.push_back({queue.number, random_sequence()});
      reader.queues.push_back(std::move(queue));
    }
    const Nanos deadline = monotonic_clock().now() + silence;
    reader.connection.send(protocol::encode(protocol::Type::attach, reader.next_id++, protocol::encode_attach(attach)),
                           deadline);
    const Connection::Received answer = reader.connection.receive(deadline);
    const auto attached = protocol::decode_attached(answer.payload);
    if (answer.type != protocol::Type::attached || !attached || attached->queues.size() != queue_pairs_ ||
        attached->mtu > own.mtu || attached->depth > attach.depth || attached->depth == 0 || attached->mtu == 0)
      throw UsageError(fmt::format("{}: answers an attach with something else", reader.connection.server()));
    for (std::uint32_t q = 0; q < queue_pairs_; ++q) {
      const RemoteEnd other{attached->gid, attached->lid, attached->queues[q].number, attached->queues[q].sequence};
      connect_queue_pair(reader.queues[q].pair.get(), own, other, attached->mtu, attach.queues[q].sequence, attached->depth);
    }
    reader.memory = attached->memory;
    adapter.depth = attached->depth;
    adapter.mtu = attached->mtu;
  }

  // A queue pair that is destroyed writes nothing more, whatever was still under way.
  void disconnected(Reader& base) override {
    auto& reader = static_cast<VerbsReader&>(base);
    reader.queues.clear();
    reader.completions.reset();
    reader.channel.reset();
  }

  void exchange(Reader& base, ReadBatch& batch) override {
    auto& reader = static_cast<VerbsReader&>(base);
    const std::uint32_t segment = pages_.place(*batch.segment).segment;
    const std::uint64_t segment_base = reader.connection.image().segments.at(segment).base;
    const std::uint32_t begin = reader.ended;
    reader.arrived.assign(reader.end - begin, 0);
    std::uint32_t next = begin, looks = 0;
    Nanos since = 0;  // when nothing had come for some looks
    while (reader.ended < reader.end) {
      for (Queue& queue : reader.queues) {
        // An equal share to each queue, so that the first does not take all.
        const std::uint32_t share = (reader.end - begin + queue_pairs_ - 1) / queue_pairs_;
        next = post(reader, queue, batch, segment_base, next, std::min(next + share, reader.end));
      }
      if (take_completions(reader, batch, begin)) {
        looks = 0;
        since = 0;
        continue;
      }
      if (++looks < looks_a_clock) continue;
      looks = 0;
      const Nanos now = monotonic_clock().now();
      if (since == 0)
        since = now;
      else if (now - since > spin)
        await(reader, now - since);
    }
  }

  // Chains requests for reads [from, to) as far as the queue has room, and rings its doorbell once.
  std::uint32_t post(VerbsReader& reader, Queue& queue, const ReadBatch& batch, std::uint64_t base, std::uint32_t from,
                     std::uint32_t to) {
    std::uint32_t n = 0;
    const std::uint32_t room = work_ - static_cast<std::uint32_t>(queue.posted.size());
    for (; from < to; ++from) {
      const PageRead& read = batch.reads[from];
      const std::uint64_t records = pages_.wanted(read);
      std::uint32_t pieces = 0;
      if (records == whole_page)
        pieces = 1;
      else
        for_records(records, pages_.geometry(), [&](std::size_t, std::size_t) { ++pieces; });
      if (pieces > work_)
        throw std::system_error(EIO, std::generic_category(), "rdma: a page of more pieces than a queue holds");
      if (n + pieces > room) break;
      std::byte* const page = pool_.page(read.buffer);
      const std::uint64_t offset = base + read.page * pages_.page_bytes();
      const auto add = [&](std::size_t at, std::size_t bytes) {
        ibv_sge& target = queue.targets[n];
        target = {reinterpret_cast<std::uintptr_t>(page + at), static_cast<std::uint32_t>(bytes), reader.key};
        ibv_send_wr& work = queue.work[n];
        work = {};
        work.wr_id = queue.next++ * queue_pairs_ + static_cast<std::uint64_t>(&queue - reader.queues.data());
        work.sg_list = &target;
        work.num_sge = 1;
        work.opcode = IBV_WR_RDMA_READ;
        work.send_flags = queue.next % signal_every == 0 ? static_cast<unsigned int>(IBV_SEND_SIGNALED) : 0u;
        aim(reader, work, offset + at, bytes);
        if (n > 0) queue.work[n - 1].next = &work;
        queue.posted.push_back({from, false});
        ++n;
      };
      if (records == whole_page)
        add(0, pages_.page_bytes());
      else
        for_records(records, pages_.geometry(), add);
      queue.posted.back().last = true;
    }
    if (n == 0) return from;
    queue.work[n - 1].send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(queue.pair.get(), queue.work.data(), &bad); error != 0)
      throw std::system_error(error, std::generic_category(), fmt::format("{}: posting reads", reader.connection.server()));
    return from;
  }

  static void aim(const VerbsReader& reader, ibv_send_wr& work, std::uint64_t offset, std::size_t bytes) {
    for (const protocol::MemoryChunk& chunk : reader.memory) {
      if (offset >= chunk.bytes) {
        offset -= chunk.bytes;
        continue;
      }
      if (bytes > chunk.bytes - offset) break;
      work.wr.rdma.remote_addr = chunk.address + offset;
      work.wr.rdma.rkey = chunk.key;
      return;
    }
    throw std::system_error(EPROTO, std::generic_category(),
                            fmt::format("{}: handed out less memory than its table has", reader.connection.server()));
  }

  // True when something came. What a queue posted before a request that completed has completed, too.
  bool take_completions(VerbsReader& reader, ReadBatch& batch, std::uint32_t begin) {
    std::array<ibv_wc, 32> completions;
    const int n = ibv_poll_cq(reader.completions.get(), static_cast<int>(completions.size()), completions.data());
    if (n < 0) throw std::system_error(EIO, std::generic_category(), "rdma: polling completions");
    for (int i = 0; i < n; ++i) {
      const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) {
        // The first failure of a queue says why; those behind it are flushed.
        throw std::system_error(
            completion_errno(completion.status), std::generic_category(),
            fmt::format("{}: read failed: {}", reader.connection.server(), describe_completion(completion.status)));
      }
      Queue& queue = reader.queues[completion.wr_id % queue_pairs_];
      for (const std::uint64_t done = completion.wr_id / queue_pairs_; queue.first <= done; ++queue.first) {
        if (queue.posted.front().last) reader.arrived[queue.posted.front().read - begin] = 1;
        queue.posted.pop_front();
      }
    }
    while (reader.ended < reader.end && reader.arrived[reader.ended - begin])
      end_one(reader, batch, static_cast<int>(pages_.page_bytes()));
    return n > 0;
  }

  // Sleeps until a completion comes or the server goes: a dead queue pair gives up only after seconds, its connection at
  // once.
  void await(VerbsReader& reader, Nanos waited) {
    if (ibv_req_notify_cq(reader.completions.get(), 0) != 0) return;
    pollfd wanted[2] = {{reader.channel->fd, POLLIN, 0}, {reader.connection.socket(), POLLIN, 0}};
    if (::poll(wanted, 2, look_ms) < 0 && errno != EINTR) throw_errno("poll");
    if (wanted[0].revents & POLLIN) {
      ibv_cq* queue = nullptr;
      void* context = nullptr;
      if (ibv_get_cq_event(reader.channel.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
    }
    if (wanted[1].revents != 0) {
      std::byte byte;
      const ssize_t got = ::recv(reader.connection.socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN))
        throw std::system_error(ECONNRESET, std::generic_category(), reader.connection.server());
    }
    if (waited > silence) throw std::system_error(ETIMEDOUT, std::generic_category(), reader.connection.server());
  }

  const std::uint32_t queue_pairs_;
  std::uint32_t work_ = 256;                        // requests of a queue pair
  std::vector<std::unique_ptr<Adapter>> adapters_;  // that of server s is number s modulo their count
};

}  // namespace

std::unique_ptr<PageSource> make_rdma_source(const ImageHeader& header, const PagePool& pool, const SourceOptions& options) {
  return std::make_unique<RdmaSource>(header, pool, options);
}

}  // namespace slacktier
