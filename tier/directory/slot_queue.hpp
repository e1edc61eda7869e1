// First-in, first-out queues of slots over one array of links: a slot is in at most one of them. Private to tier.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slacktier {

struct SlotQueue {
  std::uint32_t oldest = 0, newest = 0, size = 0;
};

class SlotQueueLinks {
 public:
  explicit SlotQueueLinks(std::uint32_t slots) : newer_(slots) {}

  void push(SlotQueue& queue, std::uint32_t slot) {
    if (queue.size++ == 0)
      queue.oldest = slot;
    else
      newer_[queue.newest] = slot;
    queue.newest = slot;
  }
  // The oldest slot; the queue must hold one.
  std::uint32_t pop(SlotQueue& queue) {
    const std::uint32_t slot = queue.oldest;
    queue.oldest = newer_[slot];
    --queue.size;
    return slot;
  }
  std::size_t bytes() const { return newer_.size() * sizeof(std::uint32_t); }

 private:
  std::vector<std::uint32_t> newer_;
};

}  // namespace slacktier
