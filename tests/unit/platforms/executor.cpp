#include "platforms/executor.hpp"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <system_error>

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("A task runs on a thread of its own and under its name", "[executor]") {
  pthread_t other{};
  char name[16] = {};
  thread_executor()
      .start("a name that is too long",
             [&] {
               other = ::pthread_self();
               ::pthread_getname_np(other, name, sizeof name);
             })
      ->join();
  CHECK(::pthread_equal(other, ::pthread_self()) == 0);
  CHECK(std::string(name) == "a name that is ");
}

TEST_CASE("join rethrows what the body threw, once", "[executor]") {
  const auto task = thread_executor().start("thrower", [] { throw std::domain_error("from the body"); });
  CHECK_THROWS_AS(task->join(), std::domain_error);
  CHECK_NOTHROW(task->join());
}

TEST_CASE("The destructor joins and keeps quiet about exceptions", "[executor]") {
  std::atomic<bool> done{false};
  {
    const auto task = thread_executor().start("worker", [&] {
      monotonic_clock().sleep_until(monotonic_clock().now() + 5'000'000);
      done = true;
      throw 7;
    });
  }
  CHECK(done);
}

TEST_CASE("What the body holds is released when it ends", "[executor]") {
  const auto held = std::make_shared<int>(1);
  const auto task = thread_executor().start("holder", [held] {});
  task->join();
  CHECK(held.use_count() == 1);
}

TEST_CASE("A task is pinned to the CPU it asks for", "[executor]") {
  cpu_set_t mine;
  REQUIRE(::sched_getaffinity(0, sizeof mine, &mine) == 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &mine)) continue;
    int seen = -1;
    thread_executor().start("pinned", [&] { seen = ::sched_getcpu(); }, {.cpu = cpu})->join();
    CHECK(seen == cpu);
  }
}

TEST_CASE("A CPU that is not there is refused by name", "[executor]") {
  for (const int cpu : {CPU_SETSIZE - 1, CPU_SETSIZE, 1'000'000}) {
    try {
      thread_executor().start("pinned", [] {}, {.cpu = cpu});
      FAIL("CPU " << cpu << " was accepted");
    } catch (const std::system_error& error) {
      CHECK(std::string(error.what()).find("on CPU " + std::to_string(cpu)) != std::string::npos);
      CHECK(error.code().value() == EINVAL);
    }
  }
}
