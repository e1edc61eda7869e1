// The search for windows on simulated steps, and on the cpu device.
#include "probe/windows.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "platforms/error.hpp"
#include "probe/device_steps.hpp"
#include "probe/windows_table.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Layers of 0.7 ms; what is delayed beyond its window shows.
class Simulated final : public StepRunner {
 public:
  std::size_t injectors() const override { return 2; }
  double plain() override { return step({}); }
  double first_hook(std::size_t) override { return step({}); }
  double hooked(std::size_t, std::span<const LayerDelay> delays) override { return step(delays); }
  std::optional<double> stamped(std::vector<double>&) override { return {}; }

  double noise = 0.02, drift = 0;
  int without_hook = -1;

 private:
  double step(std::span<const LayerDelay> delays) {
    double added = 0;
    for (const LayerDelay& delay : delays)
      if (delay.layer != without_hook) added += std::max(0.0, delay.ms - 0.7 * delay.layer - added);
    std::normal_distribution<double> normal(0, noise);
    return 7 + added + normal(random_) + drift * ++steps_;
  }
  std::mt19937_64 random_{5};
  double steps_ = 0;
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
