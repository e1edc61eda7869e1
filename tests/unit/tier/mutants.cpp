// The checks can fail: a driver that publishes before the data, does not wait, or resets its signals from the host is
// caught. Each mistake is made by a double in front of a real stream or source. Not under the thread sanitizer, which finds
// these races before the rows are compared.
#include <cstdint>
#include <memory>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"
#include "tests/unit/tier/source_driver.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool races_are_errors = true;
#else
constexpr bool races_are_errors = false;
#endif

// Calls a batch done when it is submitted, and reads its pages afterwards.
class EarlySource final : public PageSource {
 public:
  explicit EarlySource(std::unique_ptr<PageSource> inner) : inner_(std::move(inner)) {}
  ~EarlySource() override { inner_.reset(); }
  void submit(ReadBatch& batch) override {
    readings_.push_back(std::make_unique<Reading>(*inner_, *batch.segment, batch.reads));
    std::fill(batch.faults.begin(), batch.faults.end(), PageFault::none);
    batch.submitted = batch.completed = monotonic_clock().now();
    batch.done(batch);
  }
  std::string describe() const override { return "early " + inner_->describe(); }

 private:
  std::vector<std::unique_ptr<Reading>> readings_;
  std::unique_ptr<PageSource> inner_;
};

// A main stream that leaves out what it is told to.
class CarelessStream final : public Stream {
 public:
  CarelessStream(Stream& real, bool awaits, bool resets) : real_(real), awaits_(awaits), resets_(resets) {}
  void launch(std::string_view name, const void* args, std::size_t bytes) override { real_.launch(name, args, bytes); }
  void compute(Nanos duration) override { real_.compute(duration); }
  void copy(void* to, const void* from, std::size_t bytes) override { real_.copy(to, from, bytes); }
  void fill(void* to, std::uint8_t value, std::size_t bytes) override { real_.fill(to, value, bytes); }
  void host_function(void (*function)(void*), void* user) override { real_.host_function(function, user); }
  void record(Event& event) override { real_.record(event); }
  void wait(Event& event) override { real_.wait(event); }
  void await(Signal& signal) override {
    signals.push_back(&signal);
    if (awaits_) real_.await(signal);
  }
  void reset(Signal& signal) override {
    if (resets_) real_.reset(signal);
  }
  void post(Post& post) override { real_.post(post); }
  void timestamp(std::int64_t* at) override { real_.timestamp(at); }
  void wait_until(const std::int64_t* since, const std::int64_t* duration) override { real_.wait_until(since, duration); }
  void synchronize() override { real_.synchronize(); }

  std::vector<Signal*> signals;

 private:
  Stream& real_;
  const bool awaits_, resets_;
};

struct Bench {
  ScratchFolder folder;
  TableSpec spec = small_table(folder);
  std::vector<std::string> image = stage_small(folder, spec, 1);
  std::unique_ptr<Device> device = open_device("cpu");
  std::unique_ptr<CarelessStream> stream;

  // Pages that take 40 ms: no mistake goes unseen by luck, on a busy machine either. Without rows in the cache every lookup
  // is a miss.
  std::unique_ptr<Live> live(bool awaits, bool resets, TierOptions options = {}) {
    const LayerSetup slow = on("uring", image, 0, 1, {"delayed:latency_us=40000"});
    return std::make_unique<Live>(*device, spec, std::vector<LayerSetup>{slow, slow}, options, [&](Stream& real) -> Stream& {
      stream = std::make_unique<CarelessStream>(real, awaits, resets);
      return *stream;
    });
  }
};

}  // namespace

TEST_CASE("mutants: publishing before the data is caught by the rows", "[mutants]") {
  if (races_are_errors) return skip_test("the thread sanitizer ends at the first race");
  Bench bench;
  TierOptions early;
  early.decorate = [](std::unique_ptr<PageSource> real) -> std::unique_ptr<PageSource> {
    return std::make_unique<EarlySource>(std::move(real));
  };
  for (const bool mutant : {false, true}) {
    const auto live = bench.live(true, true, mutant ? early : TierOptions{});
    for (int s = 0; s < 3; ++s) {
      live->draw(400);
      REQUIRE(live->step().layers[0].status == StepStatus::ok);
    }
    REQUIRE((live->checks.mismatches > 0) == mutant);
    REQUIRE(live->checks.first_mismatch.empty() != mutant);
  }
}

TEST_CASE("mutants: a missing wait is caught by the rows", "[mutants]") {
  if (races_are_errors) return skip_test("the thread sanitizer ends at the first race");
  Bench bench;
  for (const bool mutant : {false, true}) {
    const auto live = bench.live(!mutant, true);
    live->draw(400);
    live->step();
    REQUIRE((live->checks.mismatches > 0) == mutant);
    if (!mutant) continue;
    // And by the signal: published after its reset, it is still open when the next step begins.
    REQUIRE_THROWS_AS(live->tier->begin_step(live->context, live->active), DeviceError);
  }
}

TEST_CASE("mutants: a signal that is never reset is refused by the next step", "[mutants]") {
  Bench bench;
  const auto live = bench.live(true, false);
  live->draw(400);
  live->step();
  REQUIRE(live->checks.mismatches == 0);
  try {
    live->tier->begin_step(live->context, live->active);
    FAIL("the step began");
  } catch (const DeviceError& error) {
    REQUIRE_THAT(error.what(), contains_text("layer 1") && contains_text("still open"));
  }
}

TEST_CASE("mutants: a reset from the host that comes after the stream is caught by the rows", "[mutants]") {
  if (races_are_errors) return skip_test("the thread sanitizer ends at the first race");
  Bench bench;
  const auto live = bench.live(true, false);
  std::uint64_t wrong_steps = 0;
  for (int s = 0; s < 4; ++s) {
    for (Signal* signal : bench.stream->signals) signal->word.store(0);
    live->draw(400);
    live->tier->begin_step(live->context, live->active);
    // From the second step on the host's reset of the step before has not come yet when the stream looks.
    if (s > 0)
      for (Signal* signal : bench.stream->signals) signal->word.store(1);
    live->graph->launch(*live->main);
    live->main->synchronize();
    live->tier->finish_step();
    const std::uint64_t before = live->checks.mismatches;
    live->tier->check(live->checks);
    wrong_steps += live->checks.mismatches > before;
    if (s == 0) REQUIRE(live->checks.mismatches == 0);
  }
  REQUIRE(wrong_steps > 0);
}
