#include "harness/step_model.hpp"

#include <cstdint>

#include "reports/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

Envelope windows(const Json& layers, int model_layers, double step_ms) {
  Envelope envelope;
  envelope.kind = "windows";
  envelope.settings = {{"model", "M"}};
  envelope.results = Json::array(
      {{{"batch", 8}, {"context", nullptr}, {"model_layers", model_layers}, {"step_ms", step_ms}, {"layers", layers}}});
  return envelope;
}

}  // namespace

TEST_CASE("a table that is part of the input has no window", "[step_model]") {
  // No window of layer 0 in the file: it is zero, and the layer counts as known.
  const StepModel model = model_from_windows(windows({{{"k", 2}, {"w_ms", 1.0}}}, 4, 2.0), {0, 2}, 8);
  CHECK(model.lead_time == 0);
  CHECK(model.window(0) == 0);
  CHECK(model.window(1) == 500'000);
  CHECK(model.window(2) == 1'000'000);
  CHECK(model.step() == 2'000'000);
  CHECK(model.layer_time.size() == 4);
}

TEST_CASE("a measured window of layer 0 is kept", "[step_model]") {
  const StepModel model =
      model_from_windows(windows({{{"k", 0}, {"w_ms", 0.015}}, {{"k", 1}, {"w_ms", 0.245}}}, 3, 0.7), {0, 1}, 8);
  CHECK(model.window(0) == 15'000);
  CHECK(model.window(1) == 245'000);
  CHECK(model.step() == 700'000);
  CHECK_THROWS_WITH(model_from_windows(windows({{{"k", 0}, {"w_ms", 0.5}}, {{"k", 1}, {"w_ms", 0.2}}}, 3, 0.7), {0, 1}, 8),
                    contains_text("layer 1"));
}

TEST_CASE("a model that nobody has measured has equal layers", "[step_model]") {
  const StepModel model = uniform_model(42, 28'800'000);
  CHECK(model.window(0) == 0);
  CHECK(model.window(21) == 14'400'000);
  CHECK(model.step() == 28'800'000);
  CHECK_FALSE(model.measured_here);
  CHECK_THAT(model.label, contains_text("assumed") && contains_text("42") && contains_text("28.8"));
  CHECK_THROWS_AS(uniform_model(0, 1), InputError);
  CHECK_THROWS_AS(uniform_model(3, 0), InputError);
}
