// What each part of the design is worth: the rows of the paper's Table 4, its page-cache baseline and reads on demand.
#include "harness/campaigns/campaigns.hpp"

#include <cstdint>

namespace slacktier {

Campaign ablations_campaign() {
  Campaign campaign;
  campaign.name = "ablations";
  campaign.summary = "The paper's Table 4 (layer-1-first reads, in-step dedup, cache split), page cache, reads on demand";
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  const LayerPlacement dram;
  constexpr std::uint64_t rows = 500'000;
  const Placement full = v41_placement("full design (even split)", on_disks(1, 1, rows), on_disks(1, 1, rows));
  const Placement late = v41_placement("L14-only cache", on_disks(1, 1, 0), on_disks(1, 1, rows));
  const auto interleaved = [](Placement placement, const char* name) {
    placement.name = name;
    placement.first_layer_first = false;
    return placement;
  };
  Placement no_dedup = full;
  no_dedup.name = "no in-step dedup";
  no_dedup.row_dedup = no_dedup.page_dedup = false;
  // Both layers through the page cache, which stands in for the GPU cache.
  const auto cached = [](const char* name, const char* source) {
    LayerPlacement layer = on_disks(1, 1, 0);
    layer.source = source;
    layer.drop_cache = true;
    return v41_placement(name, layer, layer);
  };
  Placement on_demand = full;
  on_demand.name = "reads on demand";
  for (auto& [k, layer] : on_demand.layers) layer.on_demand = true;
  campaign.placements = {
      v41_placement("DRAM baseline", dram, dram),
      full,
      interleaved(full, "no layer-1-first I/O"),
      no_dedup,
      late,
      interleaved(late, "L14-only cache, no layer-1-first I/O"),
      cached("page cache, no cap", "buffered"),
      cached("mmap, no cap", "mmap"),
      on_demand,
  };
  campaign.blocks = 10;
  campaign.block_steps = 40;
  return campaign;
}

}  // namespace slacktier
