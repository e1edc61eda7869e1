// Replays allocate nothing.
#include "tests/allocations.hpp"

#include <cstdint>
#include <memory>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("The counter counts", "[cpu_allocations]") {
  const std::size_t before = allocation_count();
  const auto small = std::make_unique<int>(1);
  struct alignas(64) Line {
    char bytes[64];
  };
  const auto line = std::make_unique<Line>();
  CHECK(allocation_count() - before >= 2);
}

TEST_CASE("A step of replay, signal, eager operations and synchronize allocates nothing", "[cpu_allocations]") {
  const auto device = open_loaded();
  const auto main = device->create_stream("main"), side = device->create_stream("side");
  const auto fork = device->create_event(), join = device->create_event(), eager = device->create_event();
  Signal signal;
  Doorbell bell;
  std::int64_t value = 0, at = 0;
  device->begin_capture(*main);
  main->launch("add", Add{&value, &value, 1});
  main->record(*fork);
  side->wait(*fork);
  side->host_function([](void* user) { static_cast<Doorbell*>(user)->ring(); }, &bell);
  side->compute(1'000);
  side->record(*join);
  main->await(signal);
  main->reset(signal);
  main->wait(*join);
  main->timestamp(&at);
  const auto graph = device->end_capture(*main);
  std::uint64_t epoch = 0;
  const auto step = [&] {
    signal.arm(++epoch);
    graph->launch(*main);
    SumWords words{};
    words.to = &value;
    main->launch("sum_words", words);
    main->record(*eager);
    side->wait(*eager);
    side->fill(&at, 0, sizeof at);
    bell.wait(static_cast<std::uint32_t>(epoch - 1));
    signal.publish(epoch, StepStatus::ok);
    main->synchronize();
    side->synchronize();
  };
  for (int i = 0; i < 200; ++i) step();  // every slot of the rings has held every kind of operation
  const std::size_t before = allocation_count();
  for (int i = 0; i < 1'000; ++i) step();
  CHECK(allocation_count() - before == 0);
}
