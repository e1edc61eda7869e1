// slacktier-harness run --device sim.
#pragma once

#include <string>

#include "harness/cli/commands.hpp"
#include "harness/cli/run_arguments.hpp"
#include "harness/step_model.hpp"

namespace slacktier {

// A campaign on the virtual clock: no device, no disk, no image. Service times are those of --reads and --gates; without
// them the paper's, which the result says. Throws as simulate_campaign, service_from_reads and tier_costs.
int run_simulated(const RunArguments& arguments, const Invocation& invocation, const Campaign& campaign,
                  const StepModel& model, const std::string& out, const std::string& samples_dir);

// The paper's evaluation, which is no single campaign. Tables go to stdout, and with figures and cells to the report's
// folder. Throws UsageError and Interrupted.
int run_paper_evaluation(const RunArguments& arguments, const Invocation& invocation);

}  // namespace slacktier
