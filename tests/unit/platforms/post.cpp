// Posts of streams to the host.
#include "platforms/post.hpp"

#include <cstdint>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("A poll sees what was posted, gives up in time, and when it is told to", "[post]") {
  Post post;
  std::atomic<bool> stop{false};
  const Nanos begin = monotonic_clock().now();
  CHECK_FALSE(post.poll(2'000'000, stop));
  CHECK(monotonic_clock().now() >= begin + 2'000'000);
  post.word.store(1);
  CHECK(post.poll(0, stop));
  post.clear();
  CHECK_FALSE(post.posted());
  const auto stopper = thread_executor().start("stopper", [&] { stop.store(true); });
  CHECK_FALSE(post.poll(60'000'000'000, stop));  // returns long before
  stopper->join();
}

TEST_CASE("A post is in stream order, rings its bell, and is no host function", "[post]") {
  constexpr std::uint32_t replays = 2'000;
  const auto device = open_loaded();
  CHECK(device->posts_ring());
  const auto main = device->create_stream("main"), side = device->create_stream("side");
  const auto fork = device->create_event(), join = device->create_event();
  Post rung, silent;
  Doorbell bell;
  rung.bell = &bell;
  std::int64_t value = 0, copied = 0;
  device->begin_capture(*main);
  main->launch("add", Add{&value, &value, 1});
  main->record(*fork);
  side->wait(*fork);
  side->copy(&copied, &value, sizeof value);
  side->post(silent);
  side->post(rung);
  side->record(*join);
  main->wait(*join);
  const auto graph = device->end_capture(*main);
  CHECK(graph->operations() == 4);
  CHECK(graph->host_functions() == 0);
  CHECK_FALSE(rung.posted());
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint32_t> polled{0};
  const std::atomic<bool> stop{false};
  const auto reader = thread_executor().start("reader", [&] {
    for (std::uint32_t i = 1; i <= replays; ++i) {
      bell.wait(i - 1);
      // Polled or rung for, the copy before it is there.
      if (rung.posted() && silent.poll(1'000'000'000, stop) && copied == i) ++polled;
      begun.store(i);
      begun.notify_one();
    }
  });
  for (std::uint32_t i = 1; i <= replays; ++i) {
    rung.clear();
    silent.clear();
    graph->launch(*main);
    main->synchronize();
    REQUIRE(copied == i);
    begun.wait(i - 1);
  }
  reader->join();
  CHECK(polled == replays);
}
