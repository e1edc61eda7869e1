// Capture and replay on a GPU.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>

#include "platforms/executor.hpp"
#include "tests/gpu/fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("capture runs nothing; each replay runs everything once", "[graph]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  Words words(*device);
  std::int64_t calls = 0;
  device->begin_capture(*stream);
  stream->launch("add", Add{words.device(0), words.device(0), 2});
  stream->host_function([](void* user) { ++*static_cast<std::int64_t*>(user); }, &calls);
  stream->compute(1'000);
  const auto unused = device->create_event();
  stream->record(*unused);
  CHECK_THROWS_AS(stream->synchronize(), UsageError);
  const auto graph = device->end_capture(*stream);
  stream->synchronize();
  CHECK(words[0] == 0);
  CHECK(graph->operations() == 3);
  CHECK(graph->host_functions() == 1);
  for (int i = 0; i < 50; ++i) {
    graph->launch(*stream);
    stream->launch("add", Add{words.device(0), words.device(0), -1});
    stream->synchronize();
  }
  CHECK(words[0] == 50);
  CHECK(calls == 50);
  device->begin_capture(*stream);
  const auto empty = device->end_capture(*stream);
  CHECK(empty->operations() == 0);
  empty->launch(*stream);
  stream->synchronize();
}

TEST_CASE("ten thousand replays with random delays and faults release nothing stale", "[graph]") {
  constexpr std::uint64_t replays = 10'000;
  for (const char* gate : {"spin", "wait-value", "host-node"}) {
    if (!has_gate(gate)) continue;
    INFO(gate);
    const auto device = open_gpu(gate);
    if (!device) return;
    const auto main = device->create_stream("main"), side = device->create_stream("side");
    const auto fork = device->create_event(), join = device->create_event();
    const auto memory = device->allocate_host(sizeof(Signal) * 2);
    auto* signals = new (memory->host()) Signal[2];
    const auto* device_signal = static_cast<const std::byte*>(memory->device());
    Words words(*device);
    // Words: 0 input, 1 begun, 2 on side, 3 on main, 4 result, 5 delivered, 6 status.
    Doorbell posted;

    // main: begun = input + 7; the publisher is woken;   on main = begun + 1; join; gate 0; mix all into result; close both
    // both side:                       on side = begun + delivered after gate 1
    // The host function comes before either gate: a host node that waits lets no other run.
    device->begin_capture(*main);
    main->launch("add", Add{words.device(1), words.device(0), 7});
    main->host_function([](void* bell) { static_cast<Doorbell*>(bell)->ring(); }, &posted);
    main->record(*fork);
    side->wait(*fork);
    side->launch("add", Add{words.device(2), words.device(1), 0});
    side->await(signals[1]);
    side->launch("mix", Mix{words.device(2), words.device(5)});
    side->record(*join);
    main->launch("add", Add{words.device(3), words.device(1), 1});
    main->wait(*join);
    main->await(signals[0]);
    main->launch("read_status", ReadStatus{reinterpret_cast<const std::uint32_t*>(device_signal + offsetof(Signal, status)),
                                           words.device(6)});
    main->launch("add", Add{words.device(4), words.device(3), 0});
    main->launch("mix", Mix{words.device(4), words.device(2)});
    main->launch("mix", Mix{words.device(4), words.device(6)});
    main->reset(signals[0]);
    main->reset(signals[1]);
    const auto graph = device->end_capture(*main);
    CHECK(graph->operations() == 13);
    CHECK(graph->host_functions() == (std::string(gate) == "host-node" ? 3u : 1u));

    std::atomic<std::uint64_t> early{0};
    const auto publisher = thread_executor().start("publisher", [&] {
      std::mt19937_64 random(11);
      for (std::uint64_t epoch = 1; epoch <= replays; ++epoch) {
        posted.wait(static_cast<std::uint32_t>(epoch - 1));
        words[5] = static_cast<std::int64_t>(epoch * 1'000);
        const std::uint64_t choice = random();
        if (choice % 8 == 0)
          monotonic_clock().sleep_until(monotonic_clock().now() + static_cast<Nanos>(choice / 8 % 60'000));
        if (signals[0].publish(epoch - 1, StepStatus::timed_out)) ++early;
        const auto publish = [&](std::size_t which) {
          signals[which].publish(epoch, static_cast<StepStatus>(which == 0 ? epoch % 4 : 0));
        };
        publish(choice % 2);
        if (choice % 16 == 1) monotonic_clock().sleep_until(monotonic_clock().now() + 20'000);
        publish(1 - choice % 2);
      }
    });
    std::mt19937_64 random(12);
    std::uint64_t wrong = 0;
    for (std::uint64_t epoch = 1; epoch <= replays; ++epoch) {
      words[0] = static_cast<std::int64_t>(random() % 1'000'000);
      REQUIRE((signals[0].arm(epoch) && signals[1].arm(epoch)));
      graph->launch(*main);
      main->synchronize();
      const std::int64_t on_side = (words[0] + 7) * 31 + static_cast<std::int64_t>(epoch * 1'000);
      const std::int64_t expected = ((words[0] + 8) * 31 + on_side) * 31 + static_cast<std::int64_t>(epoch % 4);
      wrong += words[4] != expected;
    }
    publisher->join();
    CHECK(wrong == 0);
    CHECK(early == 0);
    CHECK(posted.count() == replays);
  }
}

TEST_CASE("a post shows what came before it while the replay goes on", "[graph]") {
  constexpr int replays = 3'000;
  for (const char* gate : {"spin", "wait-value", "host-node"}) {
    if (!has_gate(gate)) continue;
    INFO(gate);
    const auto device = open_gpu(gate);
    if (!device) return;
    CHECK_FALSE(device->posts_ring());
    const auto main = device->create_stream("main"), side = device->create_stream("side");
    const auto fork = device->create_event(), join = device->create_event();
    const auto memory = device->allocate_host(sizeof(Post));
    auto& post = *new (memory->host()) Post;
    constexpr std::size_t copied = 6'144;  // as the indices of a step
    const auto rows = device->allocate_device(copied * 8);
    const auto on_host = device->allocate_host(copied * 8);
    Words words(*device);
    // The last word of what is copied is the replay's number.
    auto* last = static_cast<std::int64_t*>(rows->device()) + copied - 1;
    device->begin_capture(*main);
    main->launch("add", Add{last, last, 1});
    main->record(*fork);
    side->wait(*fork);
    side->copy(on_host->host(), rows->device(), copied * 8);
    side->post(post);
    side->record(*join);
    main->compute(100'000);
    main->wait(*join);
    main->launch("add", Add{words.device(0), words.device(0), 1});
    const auto graph = device->end_capture(*main);
    CHECK(graph->operations() == 5);
    CHECK(graph->host_functions() == 0);
    const std::atomic<bool> stop{false};
    const auto& seen = static_cast<const volatile std::int64_t*>(on_host->host())[copied - 1];
    int wrong = 0, early = 0;
    for (int i = 1; i <= replays; ++i) {
      post.clear();
      graph->launch(*main);
      REQUIRE(post.poll(2'000'000'000, stop));
      wrong += seen != i;
      early += words[0] == i - 1;  // the main stream is not done
      main->synchronize();
      wrong += words[0] != i;
    }
    CHECK(wrong == 0);
    CHECK(early > replays / 2);
  }
}

TEST_CASE("a graph in flight is not launched again", "[graph]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  const auto memory = device->allocate_host(sizeof(Signal));
  auto& signal = *new (memory->host()) Signal;
  Words words(*device);
  device->begin_capture(*stream);
  stream->await(signal);
  stream->launch("add", Add{words.device(0), words.device(0), 1});
  stream->reset(signal);
  const auto graph = device->end_capture(*stream);
  REQUIRE(signal.arm(1));
  graph->launch(*stream);
  CHECK_THROWS_AS(graph->launch(*stream), UsageError);
  CHECK(message_of([&] { graph->launch(*stream); }).find("in flight") != std::string::npos);
  REQUIRE(signal.publish(1, StepStatus::ok));
  stream->synchronize();
  CHECK(words[0] == 1);
  CHECK(signal.arm(2));
}

TEST_CASE("captures that are not closed properly are refused, and the streams are free again", "[graph]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto main = device->create_stream("main");
  auto side = device->create_stream("side");
  const auto event = device->create_event(), second = device->create_event();
  Words words(*device);
  const Add add{words.device(0), words.device(0), 1};
  CHECK_THROWS_AS(device->end_capture(*main), UsageError);
  device->begin_capture(*main);
  CHECK_THROWS_AS(device->begin_capture(*main), UsageError);
  SECTION("a side stream that is not joined") {
    main->record(*event);
    side->wait(*event);
    side->launch("add", add);
    CHECK_THROWS_AS(device->begin_capture(*side), UsageError);
    CHECK(message_of([&] { device->end_capture(*main); }).find("not joined to 'main'") != std::string::npos);
  }
  SECTION("work after the join") {
    main->record(*event);
    side->wait(*event);
    side->launch("add", add);
    side->record(*event);
    main->wait(*event);
    side->launch("add", add);
    CHECK(message_of([&] { device->end_capture(*main); }).find("not joined to 'main'") != std::string::npos);
  }
  SECTION("an event from outside the capture") {
    side->record(*event);
    CHECK_THROWS_AS(main->wait(*event), UsageError);
    CHECK_THROWS_AS(main->wait(*second), UsageError);
    device->end_capture(*main);
  }
  SECTION("a graph launched in a capture") {
    const auto graph = device->end_capture(*main);
    device->begin_capture(*main);
    CHECK_THROWS_AS(graph->launch(*main), UsageError);
    device->end_capture(*main);
    CHECK_NOTHROW(graph->launch(*main));
  }
  main->launch("add", add);
  main->synchronize();
  side->synchronize();
  CHECK(words[0] == 1);
}
