// A device that serves pages in modelled time: queues that share it fairly, batches of a queue one after another.
//
// Queues with work share the device page by page (NVMe's round-robin arbitration), here in the fluid limit: each of n busy
// queues gets 1/n of the rate. Within a queue the oldest batch is served first; the one behind it may overtake a little, as
// devices reorder. No time is ever lost while there is work, so the last completion is that of any other order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slacktier {

class VirtualDisk {
 public:
  // page_us: the device's time per page. later_share: weight of a queue's second batch while the first, of weight 1, is
  // still served; 0: strictly first in, first out.
  VirtualDisk(double page_us, double later_share) : page_us_(page_us), later_share_(later_share) {}

  // Empty, at time 0.
  void reset();
  // A batch of `pages` enters `queue` at `at_us`, which no earlier done() has passed. Returns its number. Allocates nothing
  // once the largest step has been seen.
  std::size_t submit(std::uint32_t queue, double at_us, double pages);
  // When the batch's last page is served. Runs the clock up to there and no further.
  double done(std::size_t batch);

 private:
  struct Batch {
    std::uint32_t queue = 0;
    double at = 0, left = 0, done = -1;
  };
  void advance();

  double page_us_, later_share_;
  double now_ = 0;
  std::vector<Batch> batches_;
  std::vector<double> rate_;             // of each batch, while advance runs
  std::vector<std::uint32_t> in_queue_;  // batches at work by queue, while advance runs
};

}  // namespace slacktier
