// The cpu device when operations fail or are abandoned: errors surface, nothing hangs.
#include "tests/catch.hpp"

#include <cstdint>
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("A failing kernel surfaces at synchronize and skips what follows", "[cpu_failure]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::int64_t value = 0;
  stream->launch("add", Add{&value, &value, 1});
  stream->launch("fail", Nothing{});
  stream->launch("add", Add{&value, &value, 100});
  CHECK_THROWS_AS(stream->synchronize(), DeviceError);
  CHECK(message_of([&] { stream->synchronize(); }) == "cpu device, stream 'main': kernel 'fail' failed: kernel broke");
  CHECK(value == 1);
  stream->launch("add", Add{&value, &value, 100});
  CHECK_THROWS_AS(stream->synchronize(), DeviceError);
  CHECK(value == 1);
  CHECK_NOTHROW(open_loaded()->create_stream("other")->synchronize());  // another device is not concerned
}

TEST_CASE("Whatever a kernel or host function throws is a DeviceError", "[cpu_failure]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  stream->launch("fail_oddly", Nothing{});
  CHECK(message_of([&] { stream->synchronize(); }).find("'fail_oddly' failed: an exception") != std::string::npos);
  const auto second = open_loaded();
  const auto other = second->create_stream("main");
  other->host_function([](void*) { throw std::runtime_error("no"); }, nullptr);
  CHECK(message_of([&] { other->synchronize(); }) == "cpu device, stream 'main': host function failed: no");
}

TEST_CASE("A failure lets other streams through gates and events", "[cpu_failure]") {
  const auto device = open_loaded();
  const auto a = device->create_stream("a"), b = device->create_stream("b"), c = device->create_stream("c");
  const auto event = device->create_event();
  Signal never;
  REQUIRE(never.arm(1));
  std::int64_t value = 0;
  b->await(never);  // would have been published for a
  b->launch("add", Add{&value, &value, 1});
  b->record(*event);
  c->wait(*event);
  c->launch("add", Add{&value, &value, 1});
  monotonic_clock().sleep_until(monotonic_clock().now() + 2'000'000);
  a->launch("fail", Nothing{});
  for (const auto& stream : {a.get(), b.get(), c.get()}) {
    CHECK(message_of([&] { stream->synchronize(); }).find("stream 'a': kernel 'fail'") != std::string::npos);
  }
  CHECK(value == 0);
}

TEST_CASE("A failure in either branch of a graph surfaces, and the graph ends", "[cpu_failure]") {
  for (const bool in_side : {false, true}) {
    const auto device = open_loaded();
    const auto main = device->create_stream("main"), side = device->create_stream("side");
    const auto fork = device->create_event(), join = device->create_event();
    Signal never;
    REQUIRE(never.arm(1));
    std::int64_t value = 0;
    device->begin_capture(*main);
    main->record(*fork);
    side->wait(*fork);
    (in_side ? side : main)->launch("fail", Nothing{});
    (in_side ? main : side)->await(never);
    side->record(*join);
    main->wait(*join);
    main->launch("add", Add{&value, &value, 1});
    const auto graph = device->end_capture(*main);
    graph->launch(*main);
    const std::string message = message_of([&] { main->synchronize(); });
    CHECK(message.find(in_side ? "stream 'side': kernel 'fail'" : "stream 'main': kernel 'fail'") != std::string::npos);
    CHECK(value == 0);
    graph->launch(*main);  // in flight no more; skipped
    CHECK_THROWS_AS(main->synchronize(), DeviceError);
  }
}

TEST_CASE("A stream held by a gate can be destroyed, with those that wait for it", "[cpu_failure]") {
  const auto device = open_loaded();
  const auto event = device->create_event();
  Signal never;
  REQUIRE(never.arm(1));
  std::int64_t value = 0;
  auto held = device->create_stream("held"), waiter = device->create_stream("waiter"),
       third = device->create_stream("third");
  held->await(never);
  held->launch("add", Add{&value, &value, 1});
  held->record(*event);
  waiter->wait(*event);
  waiter->record(*event);
  third->wait(*event);
  SECTION("the waiting one first") {
    waiter.reset();
    held.reset();
  }
  SECTION("the held one first") {
    held.reset();
    waiter->synchronize();  // its record counts as done
  }
  third->synchronize();
  CHECK(value == 0);
  CHECK_NOTHROW(device->create_stream("fresh")->synchronize());
}

TEST_CASE("A graph or its stream can be destroyed in mid-replay", "[cpu_failure]") {
  const auto device = open_loaded();
  auto main = device->create_stream("main");
  const auto side = device->create_stream("side");
  const auto fork = device->create_event(), join = device->create_event();
  for (const bool gate_in_side : {false, true}) {
    for (int variant = 0; variant < 4; ++variant) {
      Signal never, also_never;
      REQUIRE(never.arm(1));
      REQUIRE(also_never.arm(1));
      std::int64_t value = 0;
      device->begin_capture(*main);
      main->record(*fork);
      side->wait(*fork);
      (gate_in_side ? side : main)->await(never);
      side->launch("add", Add{&value, &value, 1});
      side->record(*join);
      main->wait(*join);
      main->launch("add", Add{&value, &value, 1});
      auto graph = device->end_capture(*main);
      if (variant >= 2) main->await(also_never);  // the replay stays queued
      graph->launch(*main);
      if (variant % 2 == 1) monotonic_clock().sleep_until(monotonic_clock().now() + 1'000'000);
      if (gate_in_side) {
        graph.reset();
        if (variant >= 2) REQUIRE(also_never.publish(1, StepStatus::ok));
        main->synchronize();
      } else {
        main.reset();
        main = device->create_stream("main");
        REQUIRE(never.publish(1, StepStatus::ok));
        graph->launch(*main);  // the stopped replay is over
        main->synchronize();
        CHECK(value >= 2);
      }
    }
  }
}
