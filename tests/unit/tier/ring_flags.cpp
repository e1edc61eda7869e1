// Kernels that know fewer of io_uring's set-up flags than this one, played by a set-up call that refuses them.
#include <dlfcn.h>
#include <liburing.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/source_driver.hpp"

using namespace slacktier;
using namespace slacktier::testing;

namespace {

std::atomic<unsigned> refused_flags{0};
std::atomic<int> refused_with{EINVAL};
std::atomic<int> refusals{0};

// Reads with a source whose rings were refused `flags`; its description.
std::string read_without(unsigned flags) {
  SourceBench bench;
  refusals = 0;
  refused_flags = flags;
  SourceOptions options;
  options.threads = 2;
  const auto source = bench.open("uring", {}, options);
  refused_flags = 0;
  Reading all(*source, bench.segment(), first_pages(300)), other(*source, bench.segment(1), {7, 3, 5}, 600);
  for (Reading* reading : {&all, &other}) {
    reading->wait();
    for (const PageFault fault : reading->faults) REQUIRE(fault == PageFault::none);
    for (const auto& read : reading->reads) REQUIRE(bench.whole(*reading->batch.segment, read));
  }
  return source->describe();
}

}  // namespace

// The program's own definition comes before the library's, which it calls.
extern "C" int io_uring_queue_init_params(unsigned entries, io_uring* ring, io_uring_params* params) {
  if ((params->flags & refused_flags) != 0) {
    ++refusals;
    return -refused_with;
  }
  using Call = int (*)(unsigned, io_uring*, io_uring_params*);
  static const auto real = reinterpret_cast<Call>(::dlsym(RTLD_NEXT, "io_uring_queue_init_params"));
  return real ? real(entries, ring, params) : -ENOSYS;
}

TEST_CASE("set-up flags that a kernel does not know are dropped, one after another, and the rest stay", "[ring_flags]") {
  constexpr unsigned cooperative = IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
  const std::string all = read_without(0);
  CHECK(refusals == 0);
  const auto has = [](const std::string& text, const char* name) { return text.find(name) != std::string::npos; };
  const bool knows_all = has(all, "deferred completions");  // else this kernel drops some by itself
  const std::string undeferred = read_without(IORING_SETUP_DEFER_TASKRUN);
  CHECK_FALSE(has(undeferred, "deferred completions"));
  if (knows_all) {
    CHECK(has(all, "single issuer"));
    CHECK(has(undeferred, "single issuer"));
    CHECK(has(undeferred, "cooperative completions"));
    CHECK(refusals == 2);  // once a ring
  }
  const std::string shared = read_without(IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER);
  CHECK_FALSE(has(shared, "single issuer"));
  if (knows_all) CHECK(has(shared, "cooperative completions"));
  // Linux 5.18 and before.
  const std::string plain = read_without(IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SINGLE_ISSUER | cooperative);
  for (const char* name : {"cooperative completions", "single issuer", "deferred completions"})
    CHECK_FALSE(has(plain, name));
  CHECK_THAT(plain, contains_text("io_uring O_DIRECT"));
}

TEST_CASE("a ring that is refused for another reason, or without any flag, is an error that names the step",
          "[ring_flags]") {
  SourceBench bench;
  const auto refused = [&](unsigned flags, int error) {
    refused_flags = flags;
    refused_with = error;
    int code = 0;
    std::string text;
    try {
      bench.open("uring");
    } catch (const std::system_error& failure) {
      code = failure.code().value();
      text = failure.what();
    }
    refused_flags = 0;
    refused_with = EINVAL;
    CHECK(code == error);
    CHECK_THAT(text, contains_text("io_uring set-up") && contains_text(bench.disks[0]));
  };
  refused(IORING_SETUP_CQSIZE, ENOMEM);  // not a question of flags: nothing is tried again
  refused(IORING_SETUP_CQSIZE, EINVAL);  // which no ring of ours can do without
}
