// The question in two minutes: what do the main placements cost on this machine's own disk?
#include "harness/campaigns/campaigns.hpp"

namespace slacktier {

Campaign quickstart_campaign() {
  Campaign campaign;
  campaign.name = "quickstart";
  campaign.summary =
      "Four placements of the two V4.1 tables under agent and chat sessions on this machine's disk (about 2 minutes)";
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  const LayerPlacement dram;
  campaign.placements = {
      v41_placement("DRAM baseline", dram, dram),
      v41_placement("L1 DRAM, L14 on 1 disk", dram, on_disks(1, 1, 0)),
      v41_placement("both on 1 disk", on_disks(1, 1, 0), on_disks(1, 1, 0)),
      v41_placement("both on 1 disk, cache split evenly", on_disks(1, 1, 500'000), on_disks(1, 1, 500'000)),
  };
  campaign.blocks = 10;
  campaign.block_steps = 40;
  return campaign;
}

}  // namespace slacktier
