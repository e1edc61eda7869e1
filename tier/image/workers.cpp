#include "tier/image/workers.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "platforms/executor.hpp"

namespace slacktier {

namespace {

constexpr Nanos look_interval = 100'000'000;

}  // namespace

int default_workers() {
  cpu_set_t cpus;
  if (::sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 2;  // more CPUs than the set holds
  return 2 * CPU_COUNT(&cpus);
}

void run_workers(std::size_t count, const std::string& name, const std::function<void(std::size_t)>& body,
                 const std::function<void()>& look, const std::function<void()>& stop) {
  std::atomic<std::size_t> running{0};
  Doorbell bell;
  std::exception_ptr failure;
  const auto fail = [&] {
    if (!failure) failure = std::current_exception();
    stop();
  };
  std::vector<std::unique_ptr<Task>> tasks;
  try {
    for (std::size_t worker = 0; worker < count; ++worker) {
      ++running;
      tasks.push_back(thread_executor().start(fmt::format("{}-{}", name, worker), [&, worker] {
        struct Leave {
          std::atomic<std::size_t>& running;
          Doorbell& bell;
          ~Leave() {
            --running;
            bell.ring();
          }
        } const leave{running, bell};
        body(worker);
      }));
    }
    while (true) {
      const std::uint32_t rung = bell.count();
      if (running == 0) break;
      look();
      bell.wait(rung, look_interval);
    }
    look();
  } catch (...) {
    fail();
  }
  for (const auto& task : tasks) {
    try {
      task->join();
    } catch (...) {
      fail();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace slacktier
