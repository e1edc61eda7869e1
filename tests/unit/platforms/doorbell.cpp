#include "platforms/executor.hpp"

#include <cstdint>
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("A doorbell that rang before the wait returns at once", "[doorbell]") {
  Doorbell bell;
  bell.ring();
  bell.ring();
  CHECK(bell.wait(0) == 2);
  CHECK(bell.count() == 2);
}

TEST_CASE("A doorbell that does not ring times out, never early", "[doorbell]") {
  const Doorbell bell;
  const Nanos begin = monotonic_clock().now();
  CHECK(bell.wait(0, 3'000'000) == 0);
  CHECK(monotonic_clock().now() >= begin + 3'000'000);
  CHECK(bell.wait(0, 0) == 0);
}

TEST_CASE("No ring is lost and what was written before it is visible", "[doorbell]") {
  constexpr std::uint32_t rounds = 20'000;
  Doorbell ping, pong;
  std::uint32_t written = 0;  // plain on purpose: the doorbells alone order it
  const auto peer = thread_executor().start("peer", [&] {
    for (std::uint32_t i = 0; i < rounds; ++i) {
      ping.wait(i);
      ++written;
      pong.ring();
    }
  });
  for (std::uint32_t i = 0; i < rounds; ++i) {
    ping.ring();
    REQUIRE(pong.wait(i) == i + 1);
    REQUIRE(written == i + 1);
  }
  peer->join();
}

TEST_CASE("A ring wakes every waiter", "[doorbell]") {
  Doorbell bell;
  std::unique_ptr<Task> waiters[3];
  std::atomic<int> woken{0};
  for (auto& waiter : waiters) {
    waiter = thread_executor().start("waiter", [&] { woken += static_cast<int>(bell.wait(0)); });
  }
  bell.ring();
  for (auto& waiter : waiters) waiter->join();
  CHECK(woken == 3);
}
