// The search for windows on simulated steps, and on the cpu device.
#include "probe/windows.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "platforms/error.hpp"
#include "probe/device_steps.hpp"
#include "reports/windows_table.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Layers of 0.7 ms; what is delayed beyond its window shows. Hooks may take time before layer 0, and slow down all else.
class Simulated final : public StepRunner {
 public:
  std::size_t injectors() const override { return 2; }
  double plain() override { return step(0, 1, {}); }
  double hooked(std::size_t injector, std::span<const LayerDelay> delays) override {
    std::vector<LayerDelay> late(delays.begin(), delays.end());
    for (LayerDelay& delay : late) delay.ms = std::max(0.0, delay.ms - (injector == 1 ? second_is_early : 0));
    return step(hooks_first, hooks_slow, late);
  }
  std::optional<double> stamped(std::vector<double>& reached) override { return stamps(0, 1, reached); }
  std::optional<double> hooked_stamped(std::size_t, std::vector<double>& reached) override {
    return stamps(1.4 * hooks_first, 1 + 1.4 * (hooks_slow - 1), reached);  // beside hooks they cost more
  }

  double noise = 0.02, drift = 0, outliers = 0, throttled = 0;  // throttled: added from step 400 on
  double second_is_early = 0;                                   // what the second injector loses of a delay
  int without_hook = -1;
  double hooks_first = 0, hooks_slow = 1;
  bool has_stamps = false;
  double seconds() const { return seconds_; }

 private:
  std::optional<double> stamps(double first, double slow, std::vector<double>& reached) {
    if (!has_stamps) return {};
    reached.clear();
    for (int k = 0; k < 10; ++k) reached.push_back(first + 0.7 * slow * k);
    return step(first, slow, {});
  }
  double step(double first, double slow, std::span<const LayerDelay> delays) {
    double added = 0;
    for (const LayerDelay& delay : delays)
      if (delay.layer != without_hook) added += std::max(0.0, delay.ms - first - 0.7 * slow * delay.layer - added);
    std::normal_distribution<double> normal(0, noise);
    double ms = first + 7 * slow + added + normal(random_) + drift * ++steps_;
    if (steps_ > 400) ms += throttled;
    if (std::uniform_real_distribution<double>(0, 1)(random_) < outliers) ms += 5;
    seconds_ += ms / 1e3;
    return ms;
  }
  std::mt19937_64 random_{5};
  double steps_ = 0, seconds_ = 0;
};

SearchSettings settings() {
  SearchSettings settings;
  settings.layers = {0, 1, 5, 9};
  settings.model_layers = 10;
  settings.latency_ms = {0, 0};
  settings.seconds = [] { return 0.0; };
  return settings;
}

}  // namespace

TEST_CASE("windows of simulated steps are found, through drift too", "[windows]") {
  for (const double drift : {0.0, 0.001}) {
    Simulated steps;
    steps.drift = drift;
    const SearchResult result = search_windows(steps, settings());
    REQUIRE(result.layers.size() == 4);
    CHECK(result.layers[0].status == WindowStatus::no_window);
    for (const LayerEstimate& layer : result.layers) {
      REQUIRE(layer.injectors[0].w_ms);
      CHECK(std::abs(*layer.injectors[0].w_ms - 0.7 * layer.layer) < 0.03);
    }
    CHECK(result.drifted == (drift > 0));
  }
}

TEST_CASE("what idle hooks add is taken off where they add it", "[windows]") {
  for (const bool stamps : {true, false}) {
    Simulated steps;
    steps.has_stamps = stamps;
    steps.hooks_first = stamps ? 0.2 : 0;  // which only timestamps tell
    steps.hooks_slow = 1.1;
    const SearchResult result = search_windows(steps, settings());
    CHECK(std::abs(result.hooked_ms.front() - 7.7 - steps.hooks_first) < 0.03);
    for (const LayerEstimate& layer : result.layers) {
      INFO(layer.layer);
      REQUIRE(layer.injectors[0].w_ms);
      CHECK(std::abs(*layer.injectors[0].w_ms - 0.7 * layer.layer) < 0.03);
      CHECK(std::abs(layer.injectors[0].hooks_ms - steps.hooks_first - 0.07 * layer.layer) < 0.03);
      CHECK(layer.true_w_ms.has_value() == stamps);
    }
  }
}

TEST_CASE("a GPU that throttles in mid-run is reported and spoils no window", "[windows]") {
  Simulated steps;
  steps.throttled = 0.7;
  const SearchResult result = search_windows(steps, settings());
  CHECK(result.drifted);
  for (const LayerEstimate& layer : result.layers) {
    REQUIRE(layer.injectors[0].w_ms);
    CHECK(std::abs(*layer.injectors[0].w_ms - 0.7 * layer.layer) < 0.06);
  }
}

TEST_CASE("steps that something else interrupted do not move a window", "[windows]") {
  Simulated steps;
  steps.outliers = 0.04;
  const SearchResult result = search_windows(steps, settings());
  CHECK_FALSE(result.drifted);
  for (const LayerEstimate& layer : result.layers) {
    REQUIRE(layer.injectors[0].w_ms);
    CHECK(std::abs(*layer.injectors[0].w_ms - 0.7 * layer.layer) < 0.03);
  }
}

TEST_CASE("injectors that disagree are reported, and by much leave no number", "[windows]") {
  for (const double early : {0.09, 0.8}) {
    Simulated steps;
    steps.second_is_early = early;
    const SearchResult result = search_windows(steps, settings());
    const LayerEstimate& layer = result.layers.back();
    CHECK(layer.status == WindowStatus::disagree);
    CHECK_THAT(layer.reason, contains_text("injectors disagree"));
    CHECK(layer.usable == (early < 0.1));
  }
}

TEST_CASE("the time given is kept, and what was not reached is said", "[windows]") {
  Simulated steps;
  SearchSettings brief = settings();
  brief.seconds = [&] { return steps.seconds(); };
  brief.max_seconds = 1.2;
  const SearchResult result = search_windows(steps, brief);
  CHECK(result.seconds < brief.max_seconds + 0.05);
  CHECK_FALSE(result.unmet.empty());
  Simulated others;
  brief.seconds = [&] { return others.seconds(); };
  brief.max_seconds = 0.05;
  CHECK_THROWS_WITH(search_windows(others, brief), contains_text("--max-seconds"));
}

TEST_CASE("a step that is too noisy gives no windows but the samples that it would take", "[windows]") {
  Simulated steps;
  steps.noise = 1;
  SearchSettings few = settings();
  few.max_rounds = 2;
  few.threshold_ms = 0.3;
  const SearchResult result = search_windows(steps, few);
  for (const LayerEstimate& layer : result.layers) {
    CHECK(layer.status == WindowStatus::noisy);
    CHECK_THAT(layer.reason, contains_text("noisier than the effect") && contains_text("it takes about"));
  }
}

TEST_CASE("a hook that is not in the graph and a short watchdog are errors", "[windows]") {
  Simulated steps;
  steps.without_hook = 5;
  CHECK_THROWS_WITH(search_windows(steps, settings()), contains_text("layer 5") && contains_text("not in the graph"));
  Simulated others;
  SearchSettings short_one = settings();
  short_one.watchdog_ms = 5;
  CHECK_THROWS_WITH(search_windows(others, short_one), contains_text("--watchdog-ms"));
  SearchSettings stopped = settings();
  stopped.stop = [] { return true; };
  CHECK_THROWS_AS(search_windows(others, stopped), Interrupted);
}

TEST_CASE("injectors delay on the cpu device what they are told to", "[windows]") {
  const auto device = open_device("cpu");
  SyntheticModel model(*device, std::vector<Nanos>(4, 1'000'000), "");
  for (const std::string& name : injector_names()) {
    INFO(name);
    DeviceSteps steps(*device, model, {1, 3}, {name}, 100'000'000);
    CHECK(steps.plain() == 4.0);
    CHECK(steps.hooked(0, {}) >= 4.0);
    const LayerDelay late{1, 9};
    CHECK(steps.hooked(0, {&late, 1}) >= 12.0 - 0.001);
    const LayerDelay unknown{4, 1}, unhooked{2, 1}, long_one{1, 101}, negative{1, -1};
    for (const LayerDelay& bad : {unknown, unhooked, long_one, negative})
      CHECK_THROWS_AS(steps.hooked(0, {&bad, 1}), UsageError);
  }
  CHECK_THROWS_AS(DeviceSteps(*device, model, {4}, {"host-node"}, 1'000'000), UsageError);
  CHECK_THROWS_AS(make_injector("magic", *device), UsageError);
}

TEST_CASE("hooks that did not enter the graph are a count that does not match", "[windows]") {
  const auto device = open_device("cpu");
  // Calls the hooks of its layers as it is told to, and can lose what they queued.
  class Careless final : public ProbeModel {
   public:
    Careless(Device& device, std::vector<int> calls, bool loses)
        : model_(device, std::vector<Nanos>(3, 100'000), ""), calls_(std::move(calls)), loses_(loses) {}
    std::string name() const override { return "careless"; }
    std::string label() const override { return ""; }
    int layers() const override { return 3; }
    std::unique_ptr<CapturedStep> capture(StepHooks& hooks) override {
      struct Changed final : StepHooks {
        Changed(StepHooks& hooks, const std::vector<int>& calls, bool loses) : to(hooks), layers(calls), lost(loses) {}
        void begin(Stream& main) override { to.begin(main); }
        void before_layer(Stream& main, int layer) override {
          if (layer < static_cast<int>(layers.size())) to.before_layer(main, layers[static_cast<std::size_t>(layer)]);
        }
        void end(Stream& main) override { to.end(main); }
        StepHooks& to;
        const std::vector<int> layers;
        const bool lost;
      };
      Changed changed(hooks, calls_, loses_);
      auto step = model_.capture(changed);
      if (!loses_ || ++captured_ < 3) return step;
      // A graph that was captured before there were hooks.
      struct Other final : StepHooks {
        void begin(Stream&) override {}
        void before_layer(Stream&, int) override {}
        void end(Stream&) override {}
      } none;
      return model_.capture(none);
    }

   private:
    SyntheticModel model_;
    const std::vector<int> calls_;
    const bool loses_;
    int captured_ = 0;
  };
  for (const std::vector<int>& calls : {std::vector<int>{0, 1}, std::vector<int>{0, 2, 1}, std::vector<int>{0, 1, 1}}) {
    Careless model(*device, calls, false);
    CHECK_THROWS_WITH(DeviceSteps(*device, model, {1}, {"host-node"}, 1'000'000),
                      contains_text("hooks did not enter the graph"));
  }
  for (const char* injector : {"host-node", "device-clock"}) {
    Careless model(*device, {0, 1, 2}, true);
    CHECK_THROWS_WITH(DeviceSteps(*device, model, {1}, {injector}, 1'000'000),
                      contains_text("hooks did not enter the graph") && contains_text("1 hooks add"));
  }
}

TEST_CASE("layers are named in three ways", "[windows]") {
  CHECK(parse_layers("all", 3) == std::vector<int>{0, 1, 2});
  CHECK(parse_layers("every:3", 8) == std::vector<int>{0, 3, 6});
  CHECK(parse_layers("5,1,1", 8) == std::vector<int>{1, 5});
  for (const char* bad : {"", "8", "x", "every:0", "1,,2", "-1"}) CHECK_THROWS_AS(parse_layers(bad, 8), UsageError);
}

TEST_CASE("a windows file is written, read, shown and drawn", "[windows]") {
  WindowsResult result;
  result.model_layers = 4;
  result.step_ms = 2.8;
  LayerWindow layer;
  layer.k = 2;
  layer.w_ms = layer.lo_ms = layer.hi_ms = layer.true_w_ms = 1.4;
  result.layers = {layer};
  Envelope envelope;
  set_windows_results(envelope, {result});
  envelope.settings = {{"model", "synthetic"}, {"device", "cpu"}, {"ranks", 1}};
  envelope.provenance = provenance({"slacktier-probe windows", {"test"}, 0, 0, Json::object()});
  const Envelope again = parse_envelope(to_text(envelope), "windows.json", "windows");
  CHECK(windows_results(again).at(0).layers.at(0).w_ms == std::optional<double>(1.4));
  CHECK(render(windows_tables(again).at(0), TableFormat::text).find("1.400") != std::string::npos);
  CHECK(render(compare_table({again, again}), TableFormat::text).find("2.800") != std::string::npos);
  CHECK(render_svg(windows_plot({again}, true)).find("</svg>") != std::string::npos);
}
