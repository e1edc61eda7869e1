#include "tier/sources/deliveries.hpp"

#include <algorithm>

namespace slacktier {
namespace {

// A sleeping thread wakes up to this much late; the rest is waited for awake, since the times that are modelled are of this
// size.
constexpr Nanos wake_margin = 60'000;

}  // namespace

Deliveries::Deliveries(const std::string& thread_name) {
  heap_.reserve(64);
  task_ = thread_executor().start(thread_name, [this] { run(); });
}

Deliveries::~Deliveries() {
  stop_.store(true, std::memory_order_release);
  doorbell_.ring();
  task_->join();
}

void Deliveries::at(Nanos due, void (*deliver)(void*), void* what) {
  {
    const std::lock_guard lock(mutex_);
    heap_.push_back({due, count_++, deliver, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  doorbell_.ring();
}

void Deliveries::run() {
  std::uint32_t seen = doorbell_.count();
  for (;;) {
    const bool stopping = stop_.load(std::memory_order_acquire);
    Delivery next;
    Nanos left = -1;
    {
      const std::lock_guard lock(mutex_);
      if (!heap_.empty()) {
        left = std::max<Nanos>(0, heap_.front().due - monotonic_clock().now());
        if (left == 0 || stopping) {
          std::pop_heap(heap_.begin(), heap_.end(), later);
          next = heap_.back();
          heap_.pop_back();
        }
      }
    }
    if (next.deliver != nullptr) {
      next.deliver(next.what);
    } else if (left < 0) {
      if (stopping) return;
      seen = doorbell_.wait(seen);
    } else if (left > wake_margin) {
      seen = doorbell_.wait(seen, left - wake_margin);
    }
  }
}

}  // namespace slacktier
