// Device time on the cpu device. Only exact device times and lower bounds are asserted, so a busy machine fails nothing.
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("Timed waits add up exactly, however late the thread wakes", "[cpu_timeline]") {
  constexpr int layers = 200;
  constexpr Nanos layer = 50'000;
  const auto device = open_device("cpu");
  const auto stream = device->create_stream("main");
  std::vector<std::int64_t> at(layers + 1);
  device->begin_capture(*stream);
  for (int k = 0; k < layers; ++k) {
    stream->timestamp(&at[static_cast<std::size_t>(k)]);
    stream->compute(layer);
  }
  stream->timestamp(&at[layers]);
  const auto graph = device->end_capture(*stream);
  for (int replay = 0; replay < 3; ++replay) {
    const Nanos before = monotonic_clock().now();
    graph->launch(*stream);
    stream->synchronize();
    const Nanos after = monotonic_clock().now();
    CHECK(at[0] >= before);
    for (std::size_t k = 0; k < layers; ++k) REQUIRE(at[k + 1] - at[k] == layer);
    CHECK(after >= at[layers]);  // synchronize is never ahead of the device
  }
}

TEST_CASE("Work queued in time starts where the last ended; a late launch starts when it was queued", "[cpu_timeline]") {
  const auto device = open_device("cpu");
  const auto stream = device->create_stream("main");
  std::int64_t first = 0, second = 0;
  stream->compute(20'000'000);
  stream->timestamp(&first);
  stream->compute(1'000'000);
  stream->timestamp(&second);
  stream->synchronize();
  CHECK(second >= first + 1'000'000);
  const Nanos idle = monotonic_clock().now();
  CHECK(idle >= second);
  std::int64_t third = 0;
  stream->timestamp(&third);
  stream->synchronize();
  CHECK(third >= idle);
}

TEST_CASE("A stream that is held until a time goes on exactly then, and at once where that has passed", "[cpu_timeline]") {
  const auto device = open_device("cpu");
  const auto stream = device->create_stream("main");
  std::int64_t begin = 0, held = 0, end = 0, hold = 0;
  device->begin_capture(*stream);
  stream->timestamp(&begin);
  stream->compute(2'000'000);
  stream->wait_until(&begin, &hold);
  stream->timestamp(&held);
  stream->compute(1'000'000);
  stream->timestamp(&end);
  const auto graph = device->end_capture(*stream);
  for (const Nanos wanted : {Nanos{0}, Nanos{1'500'000}, Nanos{5'000'000}, Nanos{0}}) {
    hold = wanted;
    graph->launch(*stream);
    stream->synchronize();
    CHECK(held - begin == std::max(wanted, Nanos{2'000'000}));
    CHECK(end - held == 1'000'000);
    CHECK(monotonic_clock().now() >= end);
  }
}

TEST_CASE("A gate that was open costs no device time; one that was closed costs at least until its publish",
          "[cpu_timeline]") {
  const auto device = open_device("cpu");
  const auto stream = device->create_stream("main");
  Signal signal;
  std::int64_t before = 0, after = 0, end = 0;
  device->begin_capture(*stream);
  stream->compute(1'000'000);
  stream->timestamp(&before);
  stream->await(signal);
  stream->timestamp(&after);
  stream->reset(signal);
  stream->compute(300'000);
  stream->timestamp(&end);
  const auto graph = device->end_capture(*stream);

  REQUIRE(signal.arm(1));
  REQUIRE(signal.publish(1, StepStatus::ok));
  graph->launch(*stream);
  stream->synchronize();
  CHECK(after == before);
  CHECK(end - after == 300'000);

  REQUIRE(signal.arm(2));
  graph->launch(*stream);
  monotonic_clock().sleep_until(monotonic_clock().now() + 10'000'000);
  const Nanos published = monotonic_clock().now();
  REQUIRE(signal.publish(2, StepStatus::ok));
  stream->synchronize();
  CHECK(after >= published);
  CHECK(after > before);
  CHECK(end - after == 300'000);
}

namespace {

Nanos cpu_time() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<Nanos>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// Computes for `work` of CPU time, and is off the CPU for `away`.
struct Kernel {
  Nanos work, away;
};
void kernel(void*, const void* raw) {
  const auto& args = *static_cast<const Kernel*>(raw);
  const Nanos begin = cpu_time();
  while (cpu_time() - begin < args.work) {
  }
  monotonic_clock().sleep_until(monotonic_clock().now() + args.away);
}

}  // namespace

TEST_CASE("A kernel advances device time by the CPU time it took, however long others kept its thread off the CPU",
          "[cpu_timeline]") {
  const auto device = open_device("cpu");
  const KernelEntry kernels[] = {{"kernel", kernel}};
  const ModuleImage images[] = {{"cpu", kernels}};
  device->load_module(images);
  const auto stream = device->create_stream("main");
  std::int64_t begin = 0, middle = 0, end = 0;
  device->begin_capture(*stream);
  stream->timestamp(&begin);
  stream->launch("kernel", Kernel{3'000'000, 0});
  stream->timestamp(&middle);
  stream->launch("kernel", Kernel{0, 200'000'000});
  stream->timestamp(&end);
  const auto graph = device->end_capture(*stream);
  graph->launch(*stream);
  stream->synchronize();
  CHECK(middle - begin >= 3'000'000);
  CHECK(end - middle < 200'000'000);
  CHECK(monotonic_clock().now() >= end);
}

TEST_CASE("Streams run beside each other, and a join waits for the longer branch", "[cpu_timeline]") {
  const auto device = open_device("cpu");
  const auto main = device->create_stream("main"), side = device->create_stream("side");
  const auto fork = device->create_event(), join = device->create_event();
  std::int64_t begin = 0, forked = 0, side_end = 0, joined = 0;
  Nanos main_work = 0, side_work = 0;
  SECTION("the side is longer") {
    main_work = 1'000'000;
    side_work = 8'000'000;
  }
  SECTION("main is longer") {
    main_work = 40'000'000;
    side_work = 1'000'000;
  }
  device->begin_capture(*main);
  main->timestamp(&begin);
  main->record(*fork);
  side->wait(*fork);
  side->timestamp(&forked);
  side->compute(side_work);
  side->timestamp(&side_end);
  side->record(*join);
  main->compute(main_work);
  main->wait(*join);
  main->timestamp(&joined);
  const auto graph = device->end_capture(*main);
  for (int i = 0; i < 3; ++i) {
    graph->launch(*main);
    main->synchronize();
    CHECK(forked >= begin);
    CHECK(side_end - forked == side_work);
    CHECK(joined >= side_end);
    CHECK(joined >= begin + main_work);
  }
}
