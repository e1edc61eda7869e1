// One io_uring with what a reader needs of it: set-up flags as far as the kernel knows them, one registered file, registered
// buffers. Private to tier.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <span>
#include <string>

namespace slacktier {

struct RingOptions {
  unsigned submissions = 64;      // entries of the submission queue
  unsigned completions = 128;     // more than can be outstanding: none is ever dropped
  bool poll_completions = false;  // IOPOLL: the waiting thread asks the disk, no interrupt comes
  int poller_cpu = -1;            // SQPOLL: a kernel thread on this CPU submits; -1: the reader does
  int share_poller = -1;          // descriptor of a ring whose kernel thread serves this one, too
};

class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // On the thread that will use it. Flags that lower the cost of a read are dropped one by one where the kernel refuses
  // them. 0, or -errno with failed_step() naming what was refused.
  int open(const RingOptions& options);
  int register_file(int descriptor);
  // The kernel takes at most 1 GiB a buffer: byte b of the memory lies in buffer b >> 30.
  int register_buffers(std::span<std::byte> memory);
  const char* failed_step() const { return step_; }

  bool is_open() const { return open_; }
  io_uring* get() { return &ring_; }
  int descriptor() const { return ring_.ring_fd; }
  // "deferred completions, single issuer": the flags in effect; may be empty.
  std::string flags() const;

 private:
  io_uring ring_{};
  bool open_ = false;
  const char* step_ = "";
};

}  // namespace slacktier
