// Jobs over some threads, taken in order. Private to harness.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "platforms/executor.hpp"

namespace slacktier {

// Calls job(0) … job(count - 1), each once, on `threads` threads; with one, here. Rethrows what a job throws.
inline void run_jobs(std::size_t count, unsigned threads, const std::function<void(std::size_t)>& job) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) job(i);
  };
  std::vector<std::unique_ptr<Task>> tasks;
  for (unsigned t = 1; t < threads && t < count; ++t) tasks.push_back(thread_executor().start("misses", work));
  work();
  for (auto& task : tasks) task->join();
}

}  // namespace slacktier
