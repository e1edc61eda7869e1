// The question in two minutes: what do the main placements cost on this machine's own disk?
#include "harness/campaigns/campaigns.hpp"

#include <string_view>

namespace slacktier {

Campaign quickstart_campaign() {
  Campaign campaign;
  campaign.name = "quickstart";
  campaign.summary =
      "Four placements of the two V4.1 tables under agent and chat sessions on this machine's disk (about 2 minutes)";
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  constexpr std::string_view wanted[] = {"DRAM baseline", "L1 DRAM, L14 on 1 disk", "both on 1 disk",
                                         "both on 1 disk, cache split evenly"};
  for (const Placement& placement : placement_campaign().placements)
    for (const std::string_view name : wanted)
      if (placement.name == name) campaign.placements.push_back(placement);
  campaign.blocks = 10;
  campaign.block_steps = 40;
  return campaign;
}

}  // namespace slacktier
