// Completions that are due at a given time, in the order of their times. Private to tier.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "platforms/executor.hpp"

namespace slacktier {

class Deliveries {
 public:
  explicit Deliveries(const std::string& thread_name);
  ~Deliveries();  // what is not due yet is delivered at once
  Deliveries(const Deliveries&) = delete;
  Deliveries& operator=(const Deliveries&) = delete;

  // Calls deliver(what) on the thread of this object at `due`, some microseconds after it at most where a CPU is free.
  void at(Nanos due, void (*deliver)(void*), void* what);

 private:
  struct Delivery {
    Nanos due = 0;
    std::uint64_t order = 0;  // of those due at the same time
    void (*deliver)(void*) = nullptr;
    void* what = nullptr;
  };
  static bool later(const Delivery& a, const Delivery& b) { return a.due != b.due ? a.due > b.due : a.order > b.order; }
  void run();

  std::mutex mutex_;
  std::vector<Delivery> heap_;  // the earliest is in front
  std::uint64_t count_ = 0;
  Doorbell doorbell_;
  std::atomic<bool> stop_{false};
  std::unique_ptr<Task> task_;
};

}  // namespace slacktier
