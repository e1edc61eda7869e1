// Replays allocate nothing: this file replaces the global operator new of the test program by one that counts.
#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/catch.hpp"
#include "tests/unit/platforms/cpu_fixture.hpp"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes) : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new[](std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// Without these, a sanitizer's own would make memory that the operator delete below frees as malloc's.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace slacktier;
using namespace slacktier::test;

TEST_CASE("The counter counts", "[cpu_allocations]") {
  const std::size_t before = allocations;
  const auto small = std::make_unique<int>(1);
  struct alignas(64) Line {
    char bytes[64];
  };
  const auto line = std::make_unique<Line>();
  CHECK(allocations - before >= 2);
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
  const std::size_t before = allocations;
  for (int i = 0; i < 1'000; ++i) step();
  CHECK(allocations - before == 0);
}
