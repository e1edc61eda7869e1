// Capture and replay on the cpu device.
#include <cstdint>
#include <random>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("Capture runs nothing; each replay runs everything once", "[cpu_graph]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::int64_t value = 0, calls = 0;
  device->begin_capture(*stream);
  stream->launch("add", Add{&value, &value, 2});
  stream->host_function([](void* user) { ++*static_cast<std::int64_t*>(user); }, &calls);
  stream->compute(1'000);
  const auto unused = device->create_event();
  stream->record(*unused);
  CHECK_THROWS_AS(stream->synchronize(), UsageError);
  const auto graph = device->end_capture(*stream);
  stream->synchronize();
  CHECK(value == 0);
  CHECK(graph->operations() == 3);
  CHECK(graph->host_functions() == 1);
  for (int i = 0; i < 50; ++i) {
    graph->launch(*stream);
    stream->launch("add", Add{&value, &value, -1});  // after the replay
    stream->synchronize();
  }
  CHECK(value == 50);
  CHECK(calls == 50);
}

TEST_CASE("An empty graph replays", "[cpu_graph]") {
  const auto device = open_device("cpu");
  const auto stream = device->create_stream("main");
  device->begin_capture(*stream);
  const auto graph = device->end_capture(*stream);
  CHECK(graph->operations() == 0);
  graph->launch(*stream);
  stream->synchronize();
}

TEST_CASE("A graph replays on any stream of its device", "[cpu_graph]") {
  const auto device = open_loaded();
  auto first = device->create_stream("first");
  const auto second = device->create_stream("second");
  std::int64_t value = 0;
  device->begin_capture(*first);
  first->launch("add", Add{&value, &value, 1});
  const auto graph = device->end_capture(*first);
  first.reset();
  graph->launch(*second);
  second->synchronize();
  CHECK(value == 1);
  const auto other = open_device("cpu");
  const auto foreign = other->create_stream("foreign");
  CHECK_THROWS_AS(graph->launch(*foreign), UsageError);
}

TEST_CASE("Ten thousand replays with two streams and signals from a third thread are exact", "[cpu_graph]") {
  constexpr std::uint64_t replays = 10'000;
  const auto device = open_loaded();
  const auto main = device->create_stream("main"), side = device->create_stream("side");
  const auto fork = device->create_event(), join = device->create_event();
  const auto memory = device->allocate_host(sizeof(Signal) * 2 + 8 * 8);
  auto* signals = new (memory->host()) Signal[2];
  auto* words = reinterpret_cast<std::int64_t*>(signals + 2);
  std::int64_t &input = words[0], &begun = words[1], &on_side = words[2], &on_main = words[3], &result = words[4];
  std::int64_t *delivered = &words[5], *status = &words[6];
  Doorbell posted;

  // main: begun = input + 7; wake the publisher;           on_main = begun + 1;  gate 0; join; mix all into result; reset
  // both side:                     on_side = begun + delivered after gate 1
  device->begin_capture(*main);
  main->launch("add", Add{&begun, &input, 7});
  main->record(*fork);
  main->host_function([](void* bell) { static_cast<Doorbell*>(bell)->ring(); }, &posted);
  side->wait(*fork);
  side->launch("add", Add{&on_side, &begun, 0});
  side->await(signals[1]);
  side->launch("mix", Mix{&on_side, delivered});
  side->record(*join);
  main->launch("add", Add{&on_main, &begun, 1});
  main->await(signals[0]);
  main->launch("read_status", ReadStatus{&signals[0], status});
  main->wait(*join);
  main->launch("add", Add{&result, &on_main, 0});
  main->launch("mix", Mix{&result, &on_side});
  main->launch("mix", Mix{&result, status});
  main->reset(signals[0]);
  main->reset(signals[1]);
  const auto graph = device->end_capture(*main);
  CHECK(graph->operations() == 13);
  CHECK(graph->host_functions() == 1);

  std::atomic<std::uint64_t> early_epoch{0};
  const auto publisher = thread_executor().start("publisher", [&] {
    std::mt19937_64 random(11);
    for (std::uint64_t epoch = 1; epoch <= replays; ++epoch) {
      posted.wait(static_cast<std::uint32_t>(epoch - 1));
      *delivered = static_cast<std::int64_t>(epoch * 1'000);
      const std::uint64_t choice = random();
      if (choice % 8 == 0) monotonic_clock().sleep_until(monotonic_clock().now() + static_cast<Nanos>(choice / 8 % 60'000));
      if (signals[0].publish(epoch - 1, StepStatus::timed_out)) ++early_epoch;
      const std::size_t first = choice % 2;
      const auto publish = [&](std::size_t which) {
        signals[which].publish(epoch, static_cast<StepStatus>(which == 0 ? epoch % 4 : 0));
      };
      publish(first);
      if (choice % 16 == 1) monotonic_clock().sleep_until(monotonic_clock().now() + 20'000);
      publish(1 - first);
    }
  });
  std::mt19937_64 random(12);
  std::uint64_t wrong = 0;
  for (std::uint64_t epoch = 1; epoch <= replays; ++epoch) {
    input = static_cast<std::int64_t>(random() % 1'000'000);
    REQUIRE((signals[0].arm(epoch) && signals[1].arm(epoch)));
    graph->launch(*main);
    main->synchronize();
    const std::int64_t side_result = (input + 7) * 31 + static_cast<std::int64_t>(epoch * 1'000);
    const std::int64_t expected = ((input + 8) * 31 + side_result) * 31 + static_cast<std::int64_t>(epoch % 4);
    if (result != expected) ++wrong;
  }
  publisher->join();
  CHECK(wrong == 0);
  CHECK(early_epoch == 0);
}

TEST_CASE("Three streams fork and join in turns, an event used again each time", "[cpu_graph]") {
  const auto device = open_loaded();
  const auto a = device->create_stream("a"), b = device->create_stream("b"), c = device->create_stream("c");
  const auto event = device->create_event();
  std::int64_t value = 0;
  const std::int64_t inputs[] = {1, 2, 3};
  device->begin_capture(*a);
  Stream* const streams[] = {a.get(), b.get(), c.get()};
  std::uint64_t expected = 0;
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      streams[i]->launch("mix", Mix{&value, &inputs[i]});
      streams[i]->record(*event);
      streams[(i + 1) % 3]->wait(*event);
    }
  }
  const auto graph = device->end_capture(*a);
  CHECK(graph->operations() == 60);
  for (int replay = 0; replay < 300; ++replay) {
    graph->launch(*a);
    a->synchronize();
    for (int i = 0; i < 60; ++i) expected = expected * 31 + static_cast<std::uint64_t>(inputs[i % 3]);
    REQUIRE(static_cast<std::uint64_t>(value) == expected);
  }
}

TEST_CASE("Replays queue behind what their stream holds, and two graphs run in turn", "[cpu_graph]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::int64_t value = 0;
  const std::int64_t one = 1, two = 2;
  device->begin_capture(*stream);
  stream->launch("mix", Mix{&value, &one});
  const auto first = device->end_capture(*stream);
  device->begin_capture(*stream);
  stream->launch("mix", Mix{&value, &two});
  const auto second = device->end_capture(*stream);
  Signal signal;
  REQUIRE(signal.arm(1));
  stream->await(signal);
  first->launch(*stream);
  second->launch(*stream);
  CHECK_THROWS_AS(first->launch(*stream), UsageError);
  CHECK(message_of([&] { second->launch(*stream); }).find("in flight") != std::string::npos);
  REQUIRE(signal.publish(1, StepStatus::ok));
  stream->synchronize();
  CHECK(value == 1 * 31 + 2);
  CHECK_NOTHROW(first->launch(*stream));
}

TEST_CASE("Captures that are not closed properly are refused, and the streams are free again", "[cpu_graph]") {
  const auto device = open_loaded();
  const auto main = device->create_stream("main");
  auto side = device->create_stream("side");
  const auto event = device->create_event(), second = device->create_event();
  std::int64_t value = 0;
  CHECK_THROWS_AS(device->end_capture(*main), UsageError);
  device->begin_capture(*main);
  CHECK_THROWS_AS(device->begin_capture(*main), UsageError);
  SECTION("a side stream that is not joined") {
    main->record(*event);
    side->wait(*event);
    side->launch("add", Add{&value, &value, 1});
    CHECK_THROWS_AS(device->begin_capture(*side), UsageError);
    CHECK_THROWS_AS(device->end_capture(*side), UsageError);
    CHECK(message_of([&] { device->end_capture(*main); }).find("stream 'side' was not joined to 'main'") !=
          std::string::npos);
  }
  SECTION("work after the join") {
    main->record(*event);
    side->wait(*event);
    side->launch("add", Add{&value, &value, 1});
    side->record(*event);
    main->wait(*event);
    side->launch("add", Add{&value, &value, 1});
    CHECK(message_of([&] { device->end_capture(*main); }).find("1 of its 2 operations") != std::string::npos);
  }
  SECTION("a side stream destroyed in between") {
    main->record(*event);
    side->wait(*event);
    side->launch("add", Add{&value, &value, 1});
    side.reset();
    CHECK(message_of([&] { device->end_capture(*main); }).find("'side' was destroyed") != std::string::npos);
    side = device->create_stream("side");
  }
  SECTION("an event from outside the capture") {
    side->record(*event);
    CHECK_THROWS_AS(main->wait(*event), UsageError);
    CHECK_THROWS_AS(main->wait(*second), UsageError);
    device->end_capture(*main);
  }
  SECTION("an event of a capture that has ended") {
    main->record(*event);
    device->end_capture(*main);
    CHECK_THROWS_AS(side->wait(*event), UsageError);
    side->record(*event);  // recorded outside it is an ordinary event again
    CHECK_NOTHROW(main->wait(*event));
  }
  SECTION("an event of another capture") {
    main->record(*event);
    device->begin_capture(*side);
    CHECK_THROWS_AS(side->wait(*event), UsageError);
    device->end_capture(*side);
    device->end_capture(*main);
  }
  SECTION("a graph launched in a capture") {
    const auto graph = device->end_capture(*main);
    device->begin_capture(*main);
    CHECK_THROWS_AS(graph->launch(*main), UsageError);
    device->end_capture(*main);
    CHECK_NOTHROW(graph->launch(*main));  // the refusal gave it back
  }
  main->launch("add", Add{&value, &value, 1});
  main->synchronize();
  side->synchronize();
  CHECK(value == 1);
}

TEST_CASE("A capture may be abandoned with its streams", "[cpu_graph]") {
  const auto device = open_loaded();
  auto main = device->create_stream("main");
  const auto side = device->create_stream("side");
  const auto event = device->create_event();
  std::int64_t value = 0;
  device->begin_capture(*main);
  main->record(*event);
  side->wait(*event);
  main.reset();
  side->launch("add", Add{&value, &value, 1});
  side->synchronize();
  CHECK(value == 1);
}
