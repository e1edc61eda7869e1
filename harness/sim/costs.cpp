// What the host's work is assumed to cost on the virtual clock.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/virtual_clock.hpp"
#include "reports/distribution.hpp"
#include "reports/error.hpp"
#include "reports/paper.hpp"

namespace slacktier {

CostModel paper_costs() {
  CostModel costs;
  costs.label = "host work: the paper's 80 to 160 us a step for both directory passes";
  const Json& range = paper_values().at("directory").at("resolve_us_per_step_B128");
  // The lower end is taken for steps that hit, the upper one for steps that miss everything: 2 layers of 768 lookups a rank.
  constexpr double lookups = 2 * 768;
  costs.lookup_us = range.at(0).get<double>() / lookups;
  costs.miss_us = (range.at(1).get<double>() - range.at(0).get<double>()) / lookups;
  // Its host-function node: dispatch and release as measured on an H200 (reports/h200/tier).
  costs.indices_us = 40;
  costs.release_us = 9;
  return costs;
}

CostModel tier_costs(const Envelope* gates) {
  CostModel costs;
  costs.label = "host work: a directory pass as on one 3 GHz core, not measured here";
  costs.lookup_us = 0.012;
  costs.miss_us = 0.040;
  costs.resolve_us = 2;
  costs.indices_us = 15;
  costs.release_us = 4;
  if (!gates) return costs;
  const std::string name = gates->results.at("default_gate").get<std::string>();
  for (const Json& gate : gates->results.at("gates")) {
    if (gate.at("gate") != name) continue;
    const Json& release = gate.at("release_us");
    if (!release.at("mean").is_number())
      throw InputError(fmt::format(
          "{}: results.gates: gate {} has no release latency: measure it with slacktier-probe gates", gates->file, name));
    costs.release_us = release.at("mean").get<double>();
    if (release.at("p99").is_number() && release.at("p50").is_number() && release["p50"].get<double>() > 0)
      costs.release_jitter =
          std::log(std::max(1.0, release["p99"].get<double>() / release["p50"].get<double>())) / 2.3263478740408408;
    costs.label += fmt::format("; gate {} of {}", name, gates->file);
  }
  if (gates->results.contains("post_us") && gates->results["post_us"].value("mean", Json()).is_number())
    costs.indices_us += gates->results["post_us"]["mean"].get<double>();
  return costs;
}

}  // namespace slacktier
