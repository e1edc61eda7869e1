// An engine that runs by itself and the probe that delays its layers, both in this process. The engine captures its decode
// graphs as serving engines do: for each batch two eager forwards, then a captured one; then it replays what its traffic
// asks for.
#include "probe/attachment.hpp"

#include <atomic>
#include <functional>
#include <thread>

#include "platforms/error.hpp"
#include "probe/attached_steps.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;
using slacktier::test::Scratch;

namespace {

constexpr Nanos layer_time = 300'000;
constexpr int engine_layers = 4;

class Engine {
 public:
  // forgets: a layer whose hook is not called in the capture; -1: none.
  Engine(const std::string& directory, int rank, const std::vector<int>& batches, bool decode = true, int forgets = -1)
      : device_(open_device("cpu")), main_(device_->create_stream("main")), attachment_(directory, rank, engine_layers) {
    for (const int batch : batches) {
      for (int i = 0; i < 2; ++i) forward(nullptr);
      main_->synchronize();
      device_->begin_capture(*main_);
      attachment_.queue_begin(*device_, *main_, batch, decode);
      forward([&](int layer) {
        if (layer != forgets) attachment_.queue_layer(*main_, layer);
      });
      attachment_.queue_end(*main_);
      graphs_.push_back(device_->end_capture(*main_));
      CHECK(attachment_.queued() == engine_layers + 2 - (forgets >= 0));
    }
  }
  ~Engine() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void serve() {
    thread_ = std::thread([this] {
      while (!stop_)
        for (const auto& graph : graphs_) {
          graph->launch(*main_);
          main_->synchronize();
        }
    });
  }

 private:
  void forward(const std::function<void(int)>& hook) {
    for (int layer = 0; layer < engine_layers; ++layer) {
      if (hook) hook(layer);
      main_->compute(layer_time);
    }
  }

  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Stream> main_;
  Attachment attachment_;
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

AttachOptions to(const Scratch& scratch, int ranks, std::int64_t batch, double timeout_s) {
  AttachOptions options;
  options.directory = scratch.file("attach");
  options.ranks = ranks;
  options.batch = batch;
  options.timeout_s = timeout_s;
  return options;
}

}  // namespace

TEST_CASE("an attached engine's layers are delayed, and its slowest rank counts", "[attachment]") {
  const Scratch scratch;
  Engine first(scratch.file("attach"), 0, {16, 32}), second(scratch.file("attach"), 1, {16, 32});
  first.serve();
  second.serve();
  const LayerDelay late{2, 40};
  {
    AttachedSteps steps(to(scratch, 2, 32, 60));
    CHECK(steps.layers() == engine_layers);
    CHECK(steps.hooked(0, {}) > 0);
    // At least its delay and the layers after it.
    CHECK(steps.hooked(0, {&late, 1}) >= 40 + 2 * 0.3 - 0.1);
    CHECK_THROWS_AS(steps.hooked(0, std::vector<LayerDelay>{late, {3, 50}}), UsageError);
  }
  AttachOptions one = to(scratch, 2, 16, 60);
  one.delayed_rank = 1;
  AttachedSteps steps(one);
  CHECK(steps.hooked(0, {&late, 1}) >= 40);
  one.delayed_rank = 2;
  CHECK_THROWS_WITH(AttachedSteps(one), contains_text("--delay-rank 2") && contains_text("ranks 0 to 1"));
}

TEST_CASE("a time-out names what was missing", "[attachment]") {
  const Scratch scratch;
  CHECK_THROWS_WITH(AttachedSteps(to(scratch, 2, 8, 0.02)),
                    contains_text("ranks 0, 1") && contains_text("SLACKTIER_ATTACH"));
  Engine first(scratch.file("attach"), 0, {16});
  CHECK_THROWS_WITH(AttachedSteps(to(scratch, 2, 8, 0.02)), contains_text("rank 1 of 2"));
  AttachOptions options = to(scratch, 1, 8, 0.02);
  {
    AttachedSteps idle(options);
    CHECK_THROWS_WITH(idle.hooked(0, {}),
                      contains_text("rank 0") && contains_text("batch 8") && contains_text("no step at all"));
    CHECK_THROWS_AS(idle.hooked(0, {}), EnvironmentError);
  }
  first.serve();
  options.timeout_s = 3;
  AttachedSteps other(options);
  CHECK_THROWS_WITH(other.hooked(0, {}), contains_text("of batch 16") && contains_text("--batch"));
  options.stop = [] { return true; };
  options.batch = 99;
  AttachedSteps stopped(options);
  CHECK_THROWS_AS(stopped.hooked(0, {}), Interrupted);
}

TEST_CASE("steps with prefill in them do not count, and a lost hook is an error", "[attachment]") {
  const Scratch scratch;
  Engine mixed(scratch.file("attach"), 0, {8}, false);
  mixed.serve();
  {
    AttachedSteps steps(to(scratch, 1, 8, 3));
    CHECK_THROWS_WITH(steps.hooked(0, {}), contains_text("steps with other work than decoding"));
  }
  Engine forgetful(scratch.file("other"), 0, {8}, true, 2);
  forgetful.serve();
  AttachOptions options = to(scratch, 1, 8, 60);
  options.directory = scratch.file("other");
  AttachedSteps steps(options);
  CHECK_THROWS_WITH(steps.hooked(0, {}), contains_text("3 of 4 hooks"));
}

TEST_CASE("ranks of different engines are refused", "[attachment]") {
  const Scratch scratch;
  const Attachment first(scratch.file("attach"), 0, 4), second(scratch.file("attach"), 1, 5);
  CHECK_THROWS_WITH(AttachedSteps(to(scratch, 2, 1, 5)), contains_text("rank 0 has 4 layers, rank 1 has 5"));
  CHECK_THROWS_AS(Attachment(scratch.file("attach"), 0, 0), UsageError);
  CHECK_THROWS_AS(Attachment(scratch.file("attach"), -1, 2), UsageError);
}

TEST_CASE("steps on the calling thread count as they are", "[attachment]") {
  const Scratch scratch;
  std::atomic<bool> stop{false};
  Attachment attachment(scratch.file("attach"), 0, 2);
  std::thread loop([&] {
    while (!stop) {
      attachment.begin(3, true);
      attachment.before_layer(0);
      attachment.before_layer(1);
      attachment.end();
      std::this_thread::yield();
    }
  });
  const LayerDelay late{1, 12};
  {
    AttachedSteps steps(to(scratch, 1, 3, 60));
    CHECK(steps.hooked(0, {&late, 1}) >= 12);
    CHECK(steps.plain() >= 0);
  }
  stop = true;
  loop.join();
}
