// Measured gates as a `gates` file.
#include <cstdint>

#include "probe/gates.hpp"
#include "reports/results_file.hpp"

namespace slacktier {
namespace {

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json distribution_json(std::span<const double> samples, const std::string& none) {
  const Distribution d = distribution(samples);
  Json json = {{"n", d.n},
               {"mean", or_null(d.mean)},
               {"p50", or_null(d.p50)},
               {"p99", or_null(d.p99)},
               {"min", or_null(d.min)},
               {"max", or_null(d.max)}};
  const std::string& reason = samples.empty() ? none : d.reason;
  if (!reason.empty()) json["reason"] = reason;
  return json;
}

}  // namespace

Envelope gates_envelope(const GateCosts& costs, const GateProbe& probe) {
  Envelope envelope;
  envelope.kind = "gates";
  envelope.settings = {{"device", probe.device},
                       {"samples", probe.samples},
                       {"layer_us", probe.layer_time / 1000},
                       {"closed_us", probe.closed / 1000},
                       {"idle_steps", probe.idle_steps}};
  Json gates = Json::array();
  for (const GateCost& cost : costs.gates) {
    const std::string none = cost.supported ? "no host code runs at this gate" : "not supported";
    Json gate = {{"gate", cost.gate},
                 {"supported", cost.supported},
                 {"dispatch_us", distribution_json(cost.dispatch, none)},
                 {"release_us", distribution_json(cost.release, none)},
                 {"launch_blocked_us", distribution_json(cost.launch_blocked, none)},
                 {"idle_nodes_step_us", or_null(cost.idle_step)}};
    if (!cost.reason.empty()) gate["reason"] = cost.reason;
    gates.push_back(gate);
  }
  Json& results = envelope.results;
  results = {{"gates", gates},
             {"host_function_us", distribution_json(costs.host_function, "")},
             {"post_us", distribution_json(costs.post, "")},
             {"callbacks_serialised", costs.callbacks_serialised},
             {"idle_nodes", costs.idle_nodes},
             {"idle_nodes_step_us", nullptr},
             {"default_gate", costs.default_gate}};
  for (const GateCost& cost : costs.gates)
    if (cost.gate == costs.default_gate) results["idle_nodes_step_us"] = or_null(cost.idle_step);
  results["reason"] = "default_gate: " + costs.default_gate + " " + costs.why;
  if (costs.device.backend == "cpu")
    envelope.warnings.push_back(
        {"emulated_device", "cpu: gates are emulated; their times say nothing of a GPU", "/settings/device"});
  return envelope;
}

}  // namespace slacktier
