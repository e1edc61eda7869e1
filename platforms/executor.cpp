#include "platforms/executor.hpp"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>

#include "platforms/futex.hpp"

namespace slacktier {
namespace {

// What the thread and its Task share; it lies in the Task, which joins before it goes.
struct Body {
  std::string name;
  std::function<void()> run;
  std::exception_ptr failure;
};

void* run_body(void* argument) {
  Body& body = *static_cast<Body*>(argument);
  ::pthread_setname_np(::pthread_self(), body.name.substr(0, 15).c_str());
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);  // the default of 50 µs would show in every timed wait
  try {
    body.run();
  } catch (...) {
    body.failure = std::current_exception();
  }
  body.run = nullptr;  // what the body captured ends with the thread, not with the Task
  return nullptr;
}

class Attributes {
 public:
  Attributes() { ::pthread_attr_init(&value); }
  ~Attributes() { ::pthread_attr_destroy(&value); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  pthread_attr_t value{};
};

class ThreadTask final : public Task {
 public:
  ThreadTask(const std::string& name, std::function<void()> run, TaskOptions options)
      : body_{name, std::move(run), nullptr} {
    Attributes attributes;
    if (options.cpu >= 0) {
      cpu_set_t cpus;
      CPU_ZERO(&cpus);
      const bool fits = options.cpu < CPU_SETSIZE;
      if (fits) CPU_SET(static_cast<std::size_t>(options.cpu), &cpus);
      const int refused = fits ? ::pthread_attr_setaffinity_np(&attributes.value, sizeof cpus, &cpus) : EINVAL;
      if (refused != 0) fail(refused, options);
    }
    const int refused = ::pthread_create(&thread_, &attributes.value, run_body, &body_);
    if (refused != 0) fail(refused, options);
    joinable_ = true;
  }
  ~ThreadTask() override { wait(); }
  ThreadTask(const ThreadTask&) = delete;
  ThreadTask& operator=(const ThreadTask&) = delete;

  void join() override {
    wait();
    if (body_.failure) std::rethrow_exception(std::exchange(body_.failure, nullptr));
  }

 private:
  [[noreturn]] void fail(int error, const TaskOptions& options) const {
    std::string what = "starting thread '" + body_.name + "'";
    if (options.cpu >= 0) what += " on CPU " + std::to_string(options.cpu);
    throw std::system_error(error, std::generic_category(), what);
  }
  void wait() {
    if (std::exchange(joinable_, false)) ::pthread_join(thread_, nullptr);
  }

  Body body_;
  pthread_t thread_{};
  bool joinable_ = false;
};

class ThreadExecutor final : public Executor {
 public:
  std::unique_ptr<Task> start(const std::string& name, std::function<void()> body, TaskOptions options) override {
    return std::make_unique<ThreadTask>(name, std::move(body), options);
  }
};

}  // namespace

Executor& thread_executor() {
  static ThreadExecutor executor;
  return executor;
}

void Doorbell::ring() noexcept {
  count_.fetch_add(1, std::memory_order_release);
  futex_wake_all(&count_);
}

std::uint32_t Doorbell::wait(std::uint32_t seen, Nanos timeout) const noexcept {
  const Nanos deadline = timeout < 0 ? -1 : monotonic_clock().now() + timeout;
  for (;;) {
    const std::uint32_t count = this->count();
    if (count != seen) return count;
    if (!futex_wait(count_, seen, deadline)) return this->count();
  }
}

}  // namespace slacktier
