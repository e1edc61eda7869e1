// What the uring source can be told beyond other sources: registration, who submits, who asks for completions.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "platforms/disk.hpp"
#include "platforms/error.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/host.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/source_driver.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

void read_all(SourceBench& bench, PageSource& source) {
  for (int again = 0; again < 3; ++again) {
    Reading all(source, bench.segment(), first_pages(500)), other(source, bench.segment(1), {7, 3, 5}, 600);
    for (Reading* reading : {&all, &other}) {
      reading->wait();
      for (const PageFault fault : reading->faults) REQUIRE(fault == PageFault::none);
      for (const auto& read : reading->reads) REQUIRE(bench.whole(*reading->batch.segment, read));
    }
  }
}

// Holds the first reader that brings a page until others have brought so many.
class Holding final : public ArrivalTap {
 public:
  explicit Holding(int others) : others_(others) {}
  void arrived(const ReadBatch&, std::size_t, std::byte*, int&) override {
    if (bool none = false; held_.compare_exchange_strong(none, true)) {
      holder_ = std::this_thread::get_id();
      for (int ms = 0; by_others < others_ && ms < 60'000; ++ms) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (std::this_thread::get_id() != holder_.load()) {
      ++by_others;
    }
  }
  std::atomic<int> by_others{0};

 private:
  const int others_;
  std::atomic<bool> held_{false};
  std::atomic<std::thread::id> holder_{};
};

int first_cpu() {
  cpu_set_t cpus;
  REQUIRE(::sched_getaffinity(0, sizeof cpus, &cpus) == 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &cpus)) return cpu;
  return 0;
}

}  // namespace

TEST_CASE("pages come whole with files and buffers registered or not, at any depth", "[uring]") {
  SourceBench bench(2);
  for (const bool files : {true, false})
    for (const Registration buffers : {Registration::off, Registration::automatic})
      for (const std::uint32_t depth : {1u, 7u, 128u}) {
        SourceOptions options;
        options.register_files = files;
        options.registration = buffers;
        options.queue_depth = depth;
        options.threads = 2;
        const auto source = bench.open("uring", {}, options);
        CHECK((source->describe().find("files not registered") == std::string::npos) == files);
        read_all(bench, *source);
      }
}

TEST_CASE("threads of a disk take a batch's pages in turns: one that is held up leaves its part to the others", "[uring]") {
  for (const std::uint32_t disks : {1u, 2u}) {
    SourceBench bench(disks);
    // Of each disk's pages the reader that is held keeps what it has in flight, and what it took last.
    const int pages = 500, kept = 40 / 2 + 16;
    Holding tap(pages / static_cast<int>(disks) - kept);
    SourceOptions options;
    options.threads = 2;
    options.queue_depth = 40;
    options.tap = &tap;
    const auto source = bench.open("uring", {}, options);
    Reading all(*source, bench.segment(), first_pages(pages));
    all.wait();
    CHECK(tap.by_others >= pages / static_cast<int>(disks) - kept);
    for (const PageFault fault : all.faults) REQUIRE(fault == PageFault::none);
    for (const auto& read : all.reads) REQUIRE(bench.whole(bench.segment(), read));
  }
}

TEST_CASE("a kernel thread submits where it is told to; its time is this process's", "[uring]") {
  SourceBench bench;
  SourceOptions options;
  options.poller_cpu = first_cpu();
  options.threads = 2;
  const Nanos before = thread_cpu_time("iou-sqp-");
  const auto source = bench.open("uring", {}, options);
  CHECK_THAT(source->describe(), contains_text("submissions polled on CPU"));
  read_all(bench, *source);
  CHECK(thread_cpu_time("iou-sqp-") > before);
  options.poller_cpu = 100'000;
  CHECK_THROWS_WITH(bench.open("uring", {}, options), contains_text("CPU 100000") && contains_text("taskset"));
}

TEST_CASE("polled completions are refused where the disk has no queues for them, and work where it has", "[uring]") {
  SourceBench bench;
  SourceOptions options;
  options.poll_completions = true;
  const PathFacts facts = read_path_facts(bench.disks[0]);
  if (facts.device && read_disk_facts(*facts.device).io_poll.value_or(0) == 1) {
    read_all(bench, *bench.open("uring", {}, options));
  } else {
    CHECK_THROWS_AS(bench.open("uring", {}, options), EnvironmentError);
    CHECK_THROWS_WITH(bench.open("uring", {}, options), contains_text("poll_queues") && contains_text(bench.disks[0]));
  }
  options.direct = false;
  CHECK_THROWS_AS(bench.open("uring", {}, options), UsageError);
}
