// The built-in campaigns, one file each; harness/campaign.cpp lists them.
#pragma once

#include <cstdint>

#include "harness/campaign.hpp"

namespace slacktier {

Campaign quickstart_campaign();
Campaign placement_campaign();
Campaign ablations_campaign();
Campaign remote_campaign();

// A placement of the two V4.1 tables. Cache rows are per layer and rank.
Placement v41_placement(const std::string& name, const LayerPlacement& layer1, const LayerPlacement& layer14);
LayerPlacement on_disks(std::uint32_t disks, int threads, std::uint64_t cache_rows);

}  // namespace slacktier
