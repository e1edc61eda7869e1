#include "platforms/signal.hpp"

#include <atomic>
#include <cstdint>
#include <memory>

#include "platforms/executor.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("A publish opens the word once, with its status", "[signal]") {
  Signal signal;
  const Nanos before = monotonic_clock().now();
  REQUIRE(signal.arm(1));
  CHECK(signal.word == 0);
  CHECK(signal.publish(1, StepStatus::timed_out));
  CHECK(signal.word == 1);
  CHECK(signal.status == static_cast<std::uint32_t>(StepStatus::timed_out));
  CHECK(signal.opened >= before);
  CHECK_FALSE(signal.publish(1, StepStatus::ok));
  CHECK(signal.status == static_cast<std::uint32_t>(StepStatus::timed_out));
}

TEST_CASE("A publish of another epoch is refused and changes nothing", "[signal]") {
  Signal signal;
  CHECK_FALSE(signal.publish(0, StepStatus::ok));  // never armed
  REQUIRE(signal.arm(5));
  for (const std::uint64_t epoch : {0U, 1U, 4U, 6U}) {
    CHECK_FALSE(signal.publish(epoch, StepStatus::read_error));
    CHECK(signal.word == 0);
    CHECK(signal.status == 0);
    CHECK(signal.opened == 0);
  }
  CHECK(signal.publish(5, StepStatus::ok));
}

TEST_CASE("An abandoned epoch cannot open the next one", "[signal]") {
  Signal signal;
  REQUIRE(signal.arm(1));
  REQUIRE(signal.arm(2));  // step 1 was never published
  CHECK_FALSE(signal.publish(1, StepStatus::ok));
  CHECK(signal.word == 0);
  CHECK(signal.publish(2, StepStatus::ok));
}

TEST_CASE("arm refuses epochs that do not increase and words that are open", "[signal]") {
  Signal signal;
  CHECK_FALSE(signal.arm(0));
  REQUIRE(signal.arm(3));
  CHECK_FALSE(signal.arm(3));
  CHECK_FALSE(signal.arm(2));
  REQUIRE(signal.publish(3, StepStatus::ok));
  CHECK_FALSE(signal.arm(4));  // the stream's reset has not run
  CHECK_FALSE(signal.publish(4, StepStatus::ok));
  signal.word = 0;  // what the stream's reset does
  CHECK_FALSE(signal.publish(3, StepStatus::ok));
  CHECK(signal.arm(4));
  CHECK(signal.publish(4, StepStatus::ok));
}

TEST_CASE("Of publishers that race, one wins, and its status stands", "[signal]") {
  Signal signal;
  std::atomic<int> wins{0};
  std::atomic<std::uint32_t> winner{0};
  Doorbell go, done;
  constexpr std::uint64_t rounds = 2'000;
  std::unique_ptr<Task> tasks[2];
  for (std::uint32_t me = 0; me < 2; ++me) {
    tasks[me] = thread_executor().start("publisher", [&, me] {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        go.wait(round);
        if (signal.publish(round + 1, static_cast<StepStatus>(me + 1))) {
          ++wins;
          winner = me + 1;
        }
        done.ring();
      }
    });
  }
  std::uint32_t seen = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    wins = 0;
    REQUIRE(signal.arm(round + 1));
    go.ring();
    while (seen != 2 * (round + 1)) seen = done.wait(seen);
    REQUIRE(wins == 1);
    REQUIRE(signal.status == winner);
    signal.word = 0;
  }
  for (auto& task : tasks) task->join();
}
