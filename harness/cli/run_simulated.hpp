// slacktier-harness run --device sim.
#pragma once

#include <string>

#include "harness/campaign.hpp"
#include "harness/sim.hpp"

namespace slacktier {

// Service times of a reads file and gates of a gates file; without them the paper's, which the result says. Throws as
// service_from_reads and tier_costs.
SimOptions sim_options(const std::string& reads, const std::string& gates);

}  // namespace slacktier
