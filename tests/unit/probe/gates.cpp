// What gates cost, measured on the cpu device.
#include "probe/gates.hpp"

#include <cstdint>

#include "platforms/error.hpp"
#include "probe/gates_table.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

GateProbe quick() {
  GateProbe probe;
  probe.samples = 30;
  probe.idle_nodes = 5;
  probe.idle_steps = 5;
  probe.layer_time = 50'000;
  return probe;
}

}  // namespace

TEST_CASE("gates of the cpu device are measured and fit their schema", "[gates]") {
  const GateProbe probe = quick();
  const GateCosts costs = measure_gates(probe);
  REQUIRE(costs.gates.size() == 1);
  const GateCost& futex = costs.gates[0];
  CHECK(futex.gate == "futex");
  CHECK(futex.supported);
  CHECK(costs.default_gate == "futex");
  for (const auto* samples : {&futex.release, &futex.launch_blocked, &costs.host_function, &costs.post}) {
    REQUIRE(samples->size() == probe.samples);
    for (const double us : *samples) {
      CHECK(us > 0);
      CHECK(us < 1e6);
    }
  }
  REQUIRE(futex.idle_step.has_value());
  Envelope envelope = gates_envelope(costs, probe);
  envelope.provenance = provenance({"slacktier-probe gates", {"test"}, 0, 0, Json::object()});
  const Envelope again = parse_envelope(to_text(envelope), "gates.json", "gates");
  CHECK(again.results.at("gates").size() == 1);
  CHECK(again.results.at("gates")[0].at("release_us").at("n") == probe.samples);
  CHECK(again.results.at("gates")[0].at("release_us").at("p99").is_null());  // 30 samples support none
  const std::string table = render(gates_table(again), TableFormat::text);
  CHECK(table.find("futex") != std::string::npos);
  CHECK(table.find("host functions") != std::string::npos);
}

TEST_CASE("a measurement of gates can be stopped, and unknown devices are refused", "[gates]") {
  GateProbe probe = quick();
  int looks = 0;
  probe.stop = [&] { return ++looks > 50; };
  CHECK_THROWS_AS(measure_gates(probe), Interrupted);
  probe = quick();
  probe.device = "gpu";
  CHECK_THROWS_AS(measure_gates(probe), UsageError);
}
