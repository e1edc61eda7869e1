// Operations queued on streams of the cpu device: order, events, gates, misuse.
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("open_device knows its names", "[cpu_device]") {
  const DeviceFacts facts = open_device("cpu")->facts();
  CHECK(facts.name == "cpu");
  CHECK(facts.backend == "cpu");
  CHECK_FALSE(facts.detail.empty());
  CHECK_THROWS_AS(open_device("cpu:1"), UsageError);
  for (const char* name : {"", "gpu", "CPU", "cpu0", "tpu:0"}) {
    CHECK_THROWS_AS(open_device(name), UsageError);
    CHECK(message_of([&] { open_device(name); }).find(std::string(name).append("': this build has cpu")) !=
          std::string::npos);
  }
}

TEST_CASE("Operations of a stream run in order and copy their arguments", "[cpu_device]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::int64_t value = 0, expected = 0;
  std::vector<std::int64_t> inputs(1'000);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = static_cast<std::int64_t>(i * i);
    expected = expected * 31 + inputs[i];
    expected = static_cast<std::int64_t>(static_cast<std::uint64_t>(expected) & 0xFFFF'FFFF);
  }
  // Far more than the ring's first slots, while a closed gate holds the stream, so that it has to grow.
  Signal signal;
  REQUIRE(signal.arm(1));
  stream->await(signal);
  std::int64_t low = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Mix args{&value, &inputs[i]};
    stream->launch("mix", args);
    args = {nullptr, nullptr};
  }
  SumWords words{};
  for (std::int64_t i = 0; i < 200; ++i) words.words[i] = i;
  words.to = &low;
  stream->launch("sum_words", words);
  words = {};
  CHECK(value == 0);
  REQUIRE(signal.publish(1, StepStatus::ok));
  stream->synchronize();
  CHECK((value & 0xFFFF'FFFF) == expected);
  CHECK(low == 199 * 200 / 2);
}

TEST_CASE("copy, fill and host functions take effect in stream order", "[cpu_device]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::vector<unsigned char> a(5'000, 1), b(5'000, 2), c(5'000, 3);
  struct Seen {
    unsigned char* from;
    unsigned char value;
  } seen{b.data(), 0};
  stream->fill(a.data(), 0xAB, a.size());
  stream->copy(b.data(), a.data(), a.size());
  stream->host_function([](void* user) { static_cast<Seen*>(user)->value = static_cast<Seen*>(user)->from[4'999]; }, &seen);
  stream->fill(b.data(), 0, 4'999);
  stream->copy(c.data(), b.data(), b.size());
  stream->fill(nullptr, 0, 0);
  stream->copy(nullptr, nullptr, 0);
  stream->synchronize();
  CHECK(seen.value == 0xAB);
  CHECK(c[0] == 0);
  CHECK(c[4'999] == 0xAB);
}

TEST_CASE("Buffers are zeroed, exact, and reachable from both sides", "[cpu_device]") {
  const auto device = open_device("cpu");
  for (const auto& buffer : {device->allocate_device(10'000), device->allocate_host(10'000)}) {
    CHECK(buffer->bytes() == 12'288);
    CHECK(buffer->host() == buffer->device());
    CHECK(reinterpret_cast<std::uintptr_t>(buffer->host()) % 4096 == 0);
    CHECK(static_cast<const char*>(buffer->host())[12'287] == 0);
  }
  CHECK(device->allocate_device(0)->bytes() == 0);
}

TEST_CASE("Events order streams", "[cpu_device]") {
  const auto device = open_loaded();
  const auto a = device->create_stream("a"), b = device->create_stream("b");
  const auto there = device->create_event(), back = device->create_event(), never = device->create_event();
  std::int64_t value = 1, expected = 1;
  const std::int64_t one = 1, two = 2;
  b->wait(*never);  // never recorded: no wait
  for (int i = 0; i < 500; ++i) {
    a->launch("mix", Mix{&value, &one});
    a->record(*there);
    b->wait(*there);
    b->launch("mix", Mix{&value, &two});
    b->record(*back);
    a->wait(*back);
    for (const std::int64_t from : {one, two}) {
      expected = static_cast<std::int64_t>(static_cast<std::uint64_t>(expected) * 31 + static_cast<std::uint64_t>(from));
    }
  }
  a->synchronize();
  b->synchronize();
  CHECK(value == expected);
}

TEST_CASE("A wait is for the record before it, not for a later one", "[cpu_device]") {
  const auto device = open_loaded();
  const auto a = device->create_stream("a"), b = device->create_stream("b"), c = device->create_stream("c");
  const auto event = device->create_event();
  Signal early, late;
  REQUIRE(early.arm(1));
  REQUIRE(late.arm(1));
  std::int64_t value = 0;
  a->await(early);
  a->record(*event);
  c->wait(*event);
  c->launch("add", Add{&value, &value, 1});
  b->record(*event);  // done long before a's record
  b->synchronize();
  CHECK(value == 0);
  a->await(late);
  a->record(*event);
  REQUIRE(early.publish(1, StepStatus::ok));
  c->synchronize();  // would hang if it waited for the latest record
  CHECK(value == 1);
  REQUIRE(late.publish(1, StepStatus::ok));
  a->synchronize();
}

TEST_CASE("An event may go before the work that uses it", "[cpu_device]") {
  const auto device = open_loaded();
  const auto a = device->create_stream("a"), b = device->create_stream("b");
  Signal signal;
  REQUIRE(signal.arm(1));
  std::int64_t value = 0;
  {
    const auto event = device->create_event();
    a->await(signal);
    a->launch("add", Add{&value, &value, 20});
    a->record(*event);
    b->wait(*event);
    b->launch("add", Add{&value, &value, 3});
  }
  REQUIRE(signal.publish(1, StepStatus::ok));
  b->synchronize();
  CHECK(value == 23);
}

TEST_CASE("Gates open with each status, before or after the stream reaches them", "[cpu_device]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  Signal signal;
  std::uint64_t epoch = 0;
  for (const StepStatus status : {StepStatus::ok, StepStatus::read_error, StepStatus::timed_out, StepStatus::no_buffers}) {
    for (const bool before : {true, false}) {
      std::int64_t seen = -1;
      REQUIRE(signal.arm(++epoch));
      if (before) REQUIRE(signal.publish(epoch, status));
      stream->await(signal);
      stream->launch("read_status", ReadStatus{&signal, &seen});
      stream->reset(signal);
      if (!before) {
        monotonic_clock().sleep_until(monotonic_clock().now() + 1'000'000);
        CHECK_FALSE(signal.publish(epoch - 1, StepStatus::ok));  // a stale step lets nothing through
        REQUIRE(signal.publish(epoch, status));
      }
      stream->synchronize();
      CHECK(seen == static_cast<std::int64_t>(status));
      CHECK(signal.word == 0);
    }
  }
}

TEST_CASE("Misuse is refused", "[cpu_device]") {
  const auto device = open_loaded();
  const auto stream = device->create_stream("main");
  std::int64_t value = 0;
  CHECK_THROWS_AS(stream->launch("nothing", Nothing{}), UsageError);
  CHECK(message_of([&] { stream->launch("nothing", Nothing{}); }).find("unknown kernel 'nothing'") != std::string::npos);
  CHECK_THROWS_AS(stream->launch("add", nullptr, 8), UsageError);
  CHECK_THROWS_AS(stream->compute(-1), UsageError);
  CHECK_THROWS_AS(stream->copy(nullptr, &value, 8), UsageError);
  CHECK_THROWS_AS(stream->copy(&value, nullptr, 8), UsageError);
  CHECK_THROWS_AS(stream->fill(nullptr, 0, 8), UsageError);
  CHECK_THROWS_AS(stream->host_function(nullptr, nullptr), UsageError);
  CHECK_THROWS_AS(stream->timestamp(nullptr), UsageError);
  CHECK_THROWS_AS(stream->wait_until(nullptr, &value), UsageError);
  CHECK_THROWS_AS(stream->wait_until(&value, nullptr), UsageError);
  CHECK_THROWS_AS(device->adopt_stream(0, "another's"), UsageError);
  const auto other = open_device("cpu");
  const auto foreign_event = other->create_event();
  const auto foreign_stream = other->create_stream("foreign");
  CHECK_THROWS_AS(stream->record(*foreign_event), UsageError);
  CHECK_THROWS_AS(stream->wait(*foreign_event), UsageError);
  CHECK_THROWS_AS(device->begin_capture(*foreign_stream), UsageError);
  CHECK_THROWS_AS(foreign_stream->launch("add", Add{&value, &value, 1}), UsageError);  // its device has no module
  CHECK_NOTHROW(stream->synchronize());
}

TEST_CASE("Modules must fit the device and not contradict each other", "[cpu_device]") {
  const auto device = open_loaded();
  CHECK_NOTHROW(device->load_module(kImages));  // the same again
  const ModuleImage foreign[] = {{"cuda", {}}, {"hip", {}}};
  CHECK_THROWS_AS(device->load_module(foreign), UsageError);
  CHECK_THROWS_AS(device->load_module({}), UsageError);
  const KernelEntry other[] = {{"add", mix}};
  const ModuleImage contradicting[] = {{"cpu", other}};
  CHECK(message_of([&] { device->load_module(contradicting); }).find("'add'") != std::string::npos);
  const KernelEntry empty[] = {{"empty", nullptr}};
  const ModuleImage incomplete[] = {{"cpu", empty}};
  CHECK_THROWS_AS(device->load_module(incomplete), UsageError);
}
