// Models that Python runs, with one that needs nothing but Python.
#include "probe/python_model.hpp"

#include <cstdlib>

#include "platforms/error.hpp"
#include "probe/device_steps.hpp"
#include "probe/windows.hpp"
#include "python/embedded.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

PythonModelOptions tiny(const std::string& function) {
  ::setenv("PYTHONPATH", SLACKTIER_SOURCE_DIR "/tests/unit/probe/modules", 1);
  PythonModelOptions options;
  options.model = "python:tiny_model:" + function;
  options.batch = 4;
  return options;
}

}  // namespace

TEST_CASE("a Python model's layers are delayed on the cpu device", "[python_model]") {
  const auto device = open_device("cpu");
  PythonModel model(*device, tiny("make"));
  CHECK(model.layers() == 5);
  CHECK(model.label().find("batch 4") != std::string::npos);
  for (const std::string& name : injector_names()) {
    INFO(name);
    DeviceSteps steps(*device, model, {0, 3}, {name}, 1'000'000'000);
    CHECK(steps.plain() > 0);
    CHECK(steps.hooked(0, {}) > 0);
    const LayerDelay late{3, 30};
    CHECK(steps.hooked(0, {&late, 1}) >= 30);
    std::vector<double> reached;
    REQUIRE(steps.stamped(reached));
    REQUIRE(reached.size() == 5);
    for (std::size_t k = 1; k < reached.size(); ++k) CHECK(reached[k] >= reached[k - 1]);
  }
}

TEST_CASE("what is wrong with a Python model is named", "[python_model]") {
  const auto device = open_device("cpu");
  CHECK_THROWS_WITH(PythonModel(*device, tiny("absent")), contains_text("tiny_model has no 'absent'"));
  CHECK_THROWS_WITH(PythonModel(*device, tiny("without_layers")), contains_text("layers"));
  PythonModelOptions other = tiny("make");
  other.model = "python:no_such_module:make";
  CHECK_THROWS_AS(PythonModel(*device, other), EnvironmentError);
  other.model = "python:tiny_model";
  CHECK_THROWS_AS(PythonModel(*device, other), UsageError);
  PythonModel skips(*device, tiny("skips_a_layer"));
  CHECK_THROWS_WITH(DeviceSteps(*device, skips, {1}, {"host-node"}, 1'000'000),
                    contains_text("hooks did not enter the graph"));
  PythonModel breaks(*device, tiny("breaks"));
  CHECK_THROWS_WITH(DeviceSteps(*device, breaks, {1}, {"host-node"}, 1'000'000),
                    contains_text("ValueError: the layer broke (tiny_model.py:"));
}

TEST_CASE("an error of a hook is the hook's own, not Python's", "[python_model]") {
  const auto device = open_device("cpu");
  PythonModel model(*device, tiny("make"));
  class Refusing final : public StepHooks {
   public:
    void begin(Stream&) override {}
    void before_layer(Stream&, int layer) override {
      if (layer == 2) throw CheckFailed("this hook refuses");
    }
    void end(Stream&) override {}
  } hooks;
  CHECK_THROWS_AS(model.capture(hooks), CheckFailed);
  CHECK_THROWS_WITH(model.capture(hooks), "this hook refuses");
}
