// The rows of the paper's Table 2, one rank at a time. Their names are the paper's, so that its values stand beside ours.
#include "harness/campaigns/campaigns.hpp"

#include <cstdint>

namespace slacktier {

Placement v41_placement(const std::string& name, const LayerPlacement& layer1, const LayerPlacement& layer14) {
  Placement placement;
  placement.name = name;
  placement.layers = {{1, layer1}, {14, layer14}};
  return placement;
}

LayerPlacement on_disks(std::uint32_t disks, int threads, std::uint64_t cache_rows) {
  LayerPlacement layer;
  layer.source = "uring";
  layer.disks = disks;
  layer.threads = threads;
  layer.cache_rows_per_rank = cache_rows;
  return layer;
}

Campaign placement_campaign() {
  Campaign campaign;
  campaign.name = "placement";
  campaign.summary = "The rows of the paper's Table 2: seven placements, agent and chat sessions (about 8 minutes)";
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  const LayerPlacement dram;
  campaign.placements = {
      v41_placement("DRAM baseline", dram, dram),
      v41_placement("L1 DRAM, L14 on 1 disk", dram, on_disks(1, 1, 0)),
      v41_placement("both on 1 disk", on_disks(1, 1, 0), on_disks(1, 1, 0)),
      v41_placement("both on 4 disks", on_disks(4, 1, 0), on_disks(4, 1, 0)),
      v41_placement("both on 1 disk, cache on layer 14 only", on_disks(1, 1, 0), on_disks(1, 1, 500'000)),
      v41_placement("both on 1 disk, cache split evenly", on_disks(1, 1, 500'000), on_disks(1, 1, 500'000)),
      v41_placement("both on 4 disks, cache split evenly", on_disks(4, 1, 500'000), on_disks(4, 1, 500'000)),
  };
  campaign.blocks = 10;
  campaign.block_steps = 70;
  return campaign;
}

}  // namespace slacktier
