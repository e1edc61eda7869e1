// The paper's section 6.8: both tables in another node's memory. Start slacktier-tier serve there, and name it with
// --connect;
// --source tcp where there is no RDMA. --sessions 8 and 256 are the paper's other batches.
#include <cstdint>

#include "harness/campaigns/campaigns.hpp"

namespace slacktier {

Campaign remote_campaign() {
  Campaign campaign;
  campaign.name = "remote";
  campaign.summary =
      "Both tables in another node's memory (--connect), cached and not, two instances, slower networks (section 6.8)";
  campaign.workloads = {{"agent", {}}, {"chat", {}}};
  constexpr std::uint64_t rows = 500'000;
  const auto remote = [](std::uint64_t cache_rows, const std::vector<std::string>& wrappers = {}) {
    LayerPlacement layer;
    layer.source = "rdma";
    layer.threads = 4;
    layer.remote.queue_pairs = 2;
    layer.cache_rows_per_rank = cache_rows;
    layer.wrappers = wrappers;
    return layer;
  };
  const auto both = [](const char* name, const LayerPlacement& layer) { return v41_placement(name, layer, layer); };
  campaign.placements = {
      both("DRAM baseline", LayerPlacement{}),
      both("both remote", remote(0)),
      both("both remote, cache split evenly", remote(rows)),
      both("both remote, two instances", remote(0, {"shared:tenants=2"})),
      both("both remote, cached, two instances", remote(rows, {"shared:tenants=2"})),
      both("both remote, 15 us at 100 Gb/s", remote(0, {"delayed:link=100g-15us"})),
      both("both remote, 120 us at 25 Gb/s", remote(0, {"delayed:link=25g-120us"})),
  };
  campaign.blocks = 10;
  campaign.block_steps = 40;
  return campaign;
}

}  // namespace slacktier
