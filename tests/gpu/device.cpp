// Operations queued on streams of a GPU: order, events, gates, memory, clocks, misuse.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "platforms/host.hpp"
#include "platforms/quantity.hpp"
#include "tests/gpu/fixture.hpp"

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("a GPU says what it is", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const DeviceFacts facts = device->facts();
  CHECK(facts.backend == gpu_backend());
  CHECK_FALSE(facts.name.empty());
  CHECK(facts.detail.find("multiprocessors") != std::string::npos);
  CHECK(facts.gate == "spin");
  CHECK(facts.gate_from.starts_with("profile "));
  CHECK_FALSE(facts.architecture.empty());
  CHECK(facts.pci.size() == 12);
  CHECK(open_gpu("host-node")->facts().gate == "host-node");
  CHECK(open_gpu("host-node")->facts().gate_from == "asked for");
  DeviceOptions measured;
  measured.measured_gate = "host-node";
  measured.measured_from = "gates.json";
  CHECK(open_device(gpu_name(), measured)->facts().gate == "host-node");
  CHECK(open_device(gpu_name(), measured)->facts().gate_from == "measured: gates.json");
  measured.gate = "spin";
  CHECK(open_device(gpu_name(), measured)->facts().gate == "spin");
  measured = {};
  measured.measured_gate = "futex";
  CHECK_THROWS_AS(open_device(gpu_name(), measured), UsageError);
  CHECK_THROWS_AS(open_device(gpu_backend() + ":99"), EnvironmentError);
  CHECK(message_of([] { open_device(gpu_backend() + ":99"); }).find("there ") != std::string::npos);
  for (const char* index : {"", ":", ":x", ":-1", ":0x"}) CHECK_THROWS_AS(open_device(gpu_backend() + index), UsageError);
  CHECK_THROWS_AS(open_gpu("futex"), UsageError);
  CHECK_THROWS_AS(open_gpu("auto", "rest"), UsageError);
}

TEST_CASE("work that is to hold the whole GPU is on nine in ten multiprocessors", "[device]") {
  for (const std::string work : {"gemm", "stream"}) {
    const auto device = open_gpu("auto", work);
    if (!device) return;
    const std::string text = device->facts().work;
    INFO(text);
    CHECK(text.starts_with(work));
    if (gpu_backend() != "cuda") continue;
    unsigned used = 0, all = 0;
    REQUIRE(std::sscanf(text.c_str() + work.size(), " on %u of %u multiprocessors", &used, &all) == 2);
    CHECK(10 * used >= 9 * all);
    CHECK(used <= all);
  }
}

TEST_CASE("operations of a stream run in order and copy their arguments", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  Words words(*device, 1100);
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < 1000; ++i) {
    words[100 + i] = static_cast<std::int64_t>(i * i);
    expected = expected * 31 + i * i;
    Mix args{words.device(0), words.device(100 + i)};
    stream->launch("mix", args);
    args = {nullptr, nullptr};
  }
  SumWords sum{};
  for (std::int64_t i = 0; i < 200; ++i) sum.words[i] = i;
  sum.to = words.device(1);
  stream->launch("sum_words", sum);
  sum = {};
  stream->synchronize();
  CHECK(static_cast<std::uint64_t>(words[0]) == expected);
  CHECK(words[1] == 199 * 200 / 2);
}

TEST_CASE("copy, fill and host functions take effect in stream order", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  const auto a = device->allocate_host(5000), c = device->allocate_host(5000), b = device->allocate_device(5000);
  auto* seen_from = static_cast<unsigned char*>(a->host());
  struct Seen {
    unsigned char* from;
    unsigned char value;
  } seen{seen_from, 0};
  stream->fill(a->device(), 0xAB, 5000);
  stream->copy(b->device(), a->device(), 5000);
  stream->host_function([](void* user) { static_cast<Seen*>(user)->value = static_cast<Seen*>(user)->from[4999]; }, &seen);
  stream->fill(b->device(), 0, 4999);
  stream->copy(c->device(), b->device(), 5000);
  stream->fill(nullptr, 0, 0);
  stream->copy(nullptr, nullptr, 0);
  stream->synchronize();
  CHECK(seen.value == 0xAB);
  CHECK(static_cast<unsigned char*>(c->host())[0] == 0);
  CHECK(static_cast<unsigned char*>(c->host())[4999] == 0xAB);
}

TEST_CASE("buffers are zeroed and exact, on either side", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const std::uint64_t pinned_before = read_process_memory().resident;
  const std::size_t large = (std::size_t{2} << 30) + 12'288;  // three registrations; a power of two more would be 4 GiB
  {
    const auto host = device->allocate_host(large);
    CHECK(host->bytes() == large);
    CHECK(reinterpret_cast<std::uintptr_t>(host->host()) % 4096 == 0);
    auto* bytes = static_cast<char*>(host->host());
    CHECK(bytes[large - 1] == 0);
    const std::uint64_t grown = read_process_memory().resident - pinned_before;
    CHECK(grown < large + (std::size_t{64} << 20));
    // The device reaches all of it, across the registrations.
    const auto stream = device->create_stream("main");
    auto* words = static_cast<std::int64_t*>(host->device());
    const std::size_t n = large / 8;
    const std::size_t boundary = (std::size_t{1} << 30) / 8;
    for (const std::size_t at : {std::size_t{0}, boundary - 1, boundary, 2 * boundary - 1, 2 * boundary, n - 1})
      stream->launch("add", Add{words + at, words + 1, static_cast<std::int64_t>(at + 5)});
    stream->synchronize();
    const auto* seen = static_cast<const std::int64_t*>(host->host());
    for (const std::size_t at : {std::size_t{0}, boundary - 1, boundary, 2 * boundary - 1, 2 * boundary, n - 1})
      CHECK(seen[at] == static_cast<std::int64_t>(at + 5));
    CHECK(bytes[large / 3] == 0);
  }
  const auto memory = device->allocate_device(10'000);
  CHECK(memory->bytes() == 12'288);
  CHECK(memory->host() == nullptr);
  const auto copied = device->allocate_host(12'288);
  std::memset(copied->host(), 1, 12'288);
  const auto stream = device->create_stream("main");
  stream->copy(copied->host(), memory->device(), 12'288);
  stream->synchronize();
  for (int i = 0; i < 12'288; i += 64) REQUIRE(static_cast<const char*>(copied->host())[i] == 0);
  CHECK(device->allocate_device(0)->bytes() == 0);
  CHECK(device->allocate_host(0)->bytes() == 0);
}

TEST_CASE("too much device memory is refused with what there is", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  // More than there is; more than there can be; and a size that rounding up to pages would wrap.
  for (const std::size_t bytes : {std::size_t{1} << 42, std::size_t{1} << 60, SIZE_MAX}) {
    const auto ask = [&] { device->allocate_device(bytes); };
    CHECK_THROWS_AS(ask(), EnvironmentError);
    const std::string message = message_of(ask);
    INFO(message);
    CHECK(message.find(bytes_text(bytes) + " of device memory are needed") != std::string::npos);
    CHECK(message.find(" are free") != std::string::npos);
  }
  // Less than the device's size, more than is left: the runtime itself refuses.
  std::vector<std::unique_ptr<Buffer>> taken;
  std::string message;
  for (int i = 0; i < 64 && message.empty(); ++i) try {
      taken.push_back(device->allocate_device(std::size_t{16} << 30));
    } catch (const EnvironmentError& error) {
      message = error.what();
    }
  CHECK(message.find("16.0 GiB of device memory are needed") != std::string::npos);
  taken.clear();
  CHECK_NOTHROW(device->allocate_device(1 << 20));
}

TEST_CASE("peers that cannot be are refused by name", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  CHECK_THROWS_AS(device->allocate_peer("cpu", 4096), UsageError);
  CHECK_THROWS_AS(device->allocate_peer(gpu_backend() + ":x", 4096), UsageError);
  CHECK(message_of([&] { device->allocate_peer(gpu_name(), 4096); }).find("is the device itself") != std::string::npos);
  const auto ask = [&] { device->allocate_peer(gpu_backend() + ":98", 4096); };
  CHECK_THROWS_AS(ask(), EnvironmentError);
  CHECK(message_of(ask).find("peer " + gpu_backend() + ":98: there ") != std::string::npos);
}

TEST_CASE("gates open with each status, before or after the stream reaches them", "[device]") {
  for (const char* gate : {"spin", "wait-value", "host-node"}) {
    if (!has_gate(gate)) continue;
    const auto device = open_gpu(gate);
    if (!device) return;
    const auto stream = device->create_stream("main");
    const auto memory = device->allocate_host(sizeof(Signal));
    auto& signal = *new (memory->host()) Signal;
    Words words(*device);
    std::uint64_t epoch = 0;
    for (const StepStatus status : {StepStatus::ok, StepStatus::read_error, StepStatus::timed_out, StepStatus::no_buffers})
      for (const bool before : {true, false}) {
        INFO(gate << " " << static_cast<int>(status) << " " << before);
        words[0] = -1;
        REQUIRE(signal.arm(++epoch));
        if (before) REQUIRE(signal.publish(epoch, status));
        stream->await(signal);
        stream->launch("read_status", ReadStatus{reinterpret_cast<const std::uint32_t*>(
                                                     static_cast<const char*>(memory->device()) + offsetof(Signal, status)),
                                                 words.device(0)});
        stream->reset(signal);
        if (!before) {
          monotonic_clock().sleep_until(monotonic_clock().now() + 2'000'000);
          CHECK(words[0] == -1);
          CHECK_FALSE(signal.publish(epoch - 1, StepStatus::ok));
          REQUIRE(signal.publish(epoch, status));
        }
        stream->synchronize();
        CHECK(words[0] == static_cast<std::int64_t>(status));
        CHECK(signal.word == 0);
      }
  }
}

TEST_CASE("whoever destroys what closed gates need lets them through", "[device]") {
  for (const char* gate : {"spin", "wait-value", "host-node"}) {
    if (!has_gate(gate)) continue;
    INFO(gate);
    const auto device = open_gpu(gate);
    if (!device) return;
    Words words(*device);
    {
      auto memory = device->allocate_host(sizeof(Signal));
      auto& signal = *new (memory->host()) Signal;
      auto stream = device->create_stream("main");
      stream->await(signal);
      stream->launch("add", Add{words.device(0), words.device(0), 1});
      memory.reset();  // the signal's memory first
      stream->synchronize();
      CHECK(words[0] == 1);
    }
    {
      const auto memory = device->allocate_host(sizeof(Signal));
      auto& signal = *new (memory->host()) Signal;
      auto stream = device->create_stream("main");
      device->begin_capture(*stream);
      stream->await(signal);
      stream->launch("add", Add{words.device(0), words.device(0), 1});
      stream->reset(signal);
      auto graph = device->end_capture(*stream);
      graph->launch(*stream);
      graph.reset();  // in mid-replay
      stream->synchronize();
      CHECK(words[0] == 2);
      stream->await(signal);
      stream.reset();
    }
  }
}

TEST_CASE("the device's clock is matched to the host's", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  Words words(*device);
  for (int i = 0; i < 200; ++i) {
    const Nanos before = monotonic_clock().now();
    stream->timestamp(&words[0]);
    stream->compute(200'000);
    stream->timestamp(&words[1]);
    stream->synchronize();
    const Nanos after = monotonic_clock().now();
    CHECK(words[1] - words[0] >= 200'000);
    CHECK(words[1] - words[0] < 400'000);
    // 20 us for what the two readings may be apart, and the clock's steps.
    CHECK(device->host_time(words[0]) > before - 20'000);
    CHECK(device->host_time(words[1]) < after + 20'000);
    if (i % 40 == 0) monotonic_clock().sleep_until(monotonic_clock().now() + 300'000'000);
  }
}

TEST_CASE("a stream is held until a time on the device's clock", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  Words words(*device);
  // Words: 0 begin, 1 held, 2 how long.
  device->begin_capture(*stream);
  stream->timestamp(&words[0]);
  stream->compute(200'000);
  stream->wait_until(&words[0], &words[2]);
  stream->timestamp(&words[1]);
  const auto graph = device->end_capture(*stream);
  for (int i = 0; i < 20; ++i)
    for (const Nanos wanted : {Nanos{0}, Nanos{150'000}, Nanos{1'000'000}}) {
      words[2] = wanted;
      graph->launch(*stream);
      stream->synchronize();
      CHECK(words[1] - words[0] >= std::max(wanted, Nanos{200'000}));
      CHECK(words[1] - words[0] < std::max(wanted, Nanos{200'000}) + 100'000);
    }
}

TEST_CASE("another library's stream takes work", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto adopted = device->adopt_stream(0, "the default stream");
  Words words(*device);
  std::int64_t calls = 0;
  adopted->launch("add", Add{words.device(1), words.device(0), 3});
  adopted->host_function([](void* user) { ++*static_cast<std::int64_t*>(user); }, &calls);
  adopted->synchronize();
  CHECK(words[1] == 3);
  CHECK(calls == 1);
}

TEST_CASE("each kind of work lasts as long as asked", "[device]") {
  for (const char* work : {"spin", "gemm", "stream"}) {
    INFO(work);
    const auto device = open_gpu("auto", work);
    if (!device) return;
    const auto stream = device->create_stream("main");
    Words words(*device);
    stream->compute(100'000);
    for (int i = 0; i < 20; ++i) {
      stream->timestamp(&words[0]);
      stream->compute(700'000);
      stream->timestamp(&words[1]);
      stream->synchronize();
      CHECK(words[1] - words[0] >= 700'000);
      CHECK(words[1] - words[0] < 760'000);
    }
  }
}

TEST_CASE("misuse is refused", "[device]") {
  const auto device = open_gpu();
  if (!device) return;
  const auto stream = device->create_stream("main");
  Signal elsewhere;
  std::int64_t stamp = 0;
  CHECK_THROWS_AS(stream->await(elsewhere), UsageError);
  CHECK_THROWS_AS(stream->reset(elsewhere), UsageError);
  CHECK_THROWS_AS(stream->timestamp(&stamp), UsageError);
  CHECK_THROWS_AS(stream->timestamp(nullptr), UsageError);
  CHECK(message_of([&] { stream->launch("nothing", Add{}); }).find("unknown kernel 'nothing'") != std::string::npos);
  CHECK_THROWS_AS(stream->launch("add", nullptr, 8), UsageError);
  CHECK_THROWS_AS(stream->compute(-1), UsageError);
  CHECK_THROWS_AS(stream->copy(nullptr, &stamp, 8), UsageError);
  CHECK_THROWS_AS(stream->fill(nullptr, 0, 8), UsageError);
  CHECK_THROWS_AS(stream->host_function(nullptr, nullptr), UsageError);
  const auto other = open_gpu();
  const auto foreign_event = other->create_event();
  const auto foreign_stream = other->create_stream("foreign");
  CHECK_THROWS_AS(stream->record(*foreign_event), UsageError);
  CHECK_THROWS_AS(stream->wait(*foreign_event), UsageError);
  CHECK_THROWS_AS(device->begin_capture(*foreign_stream), UsageError);
  CHECK_NOTHROW(stream->synchronize());
}
