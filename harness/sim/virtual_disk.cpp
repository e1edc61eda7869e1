#include "harness/virtual_disk.hpp"

#include <algorithm>
#include <limits>

namespace slacktier {

void VirtualDisk::reset() {
  batches_.clear();
  now_ = 0;
}

std::size_t VirtualDisk::submit(std::uint32_t queue, double at_us, double pages) {
  batches_.push_back({queue, std::max(at_us, now_), pages, -1});
  if (pages <= 0 || page_us_ <= 0) batches_.back().done = batches_.back().at;
  rate_.resize(batches_.size());
  if (in_queue_.size() <= queue) in_queue_.resize(queue + 1);
  return batches_.size() - 1;
}

double VirtualDisk::done(std::size_t batch) {
  while (batches_[batch].done < 0) advance();
  return batches_[batch].done;
}

// To the next arrival or completion.
void VirtualDisk::advance() {
  std::fill(in_queue_.begin(), in_queue_.end(), 0u);
  double next = std::numeric_limits<double>::infinity();
  std::size_t busy = 0;
  for (const Batch& b : batches_) {
    if (b.done >= 0) continue;
    if (b.at > now_) {
      next = std::min(next, b.at);
    } else {
      busy += in_queue_[b.queue]++ == 0;
    }
  }
  if (busy == 0) {
    now_ = next;
    return;
  }
  // Batches are numbered in the order of submission, so a queue's first one at work is its oldest.
  const double of_queue = 1 / (page_us_ * static_cast<double>(busy));
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const Batch& b = batches_[i];
    rate_[i] = 0;
    if (b.done >= 0 || b.at > now_) continue;
    std::uint32_t& left = in_queue_[b.queue];  // counts batches; from here on it also says which place this one has
    constexpr std::uint32_t first_seen = 1u << 31, second_seen = 1u << 30;
    const bool shares = (left & ~(first_seen | second_seen)) > 1 && later_share_ > 0;
    if (!(left & first_seen)) {
      left |= first_seen;
      rate_[i] = shares ? of_queue / (1 + later_share_) : of_queue;
    } else if (!(left & second_seen)) {
      left |= second_seen;
      rate_[i] = shares ? of_queue * later_share_ / (1 + later_share_) : 0;
    }
    if (rate_[i] > 0) next = std::min(next, now_ + b.left / rate_[i]);
  }
  const double passed = next - now_;
  now_ = next;
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    Batch& b = batches_[i];
    if (rate_[i] <= 0 || b.done >= 0) continue;
    b.left -= rate_[i] * passed;
    // What rounding leaves: a billionth of a page is no page.
    if (b.left <= 1e-9) b.done = now_;
  }
}

}  // namespace slacktier
