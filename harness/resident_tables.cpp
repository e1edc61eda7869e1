#include "harness/resident_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"
#include "platforms/host.hpp"

namespace slacktier {

ResidentTables::ResidentTables(Device& device, const TableSpec& spec, const Campaign& campaign, const Images& images) {
  for (const Placement& placement : campaign.placements)
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      const LayerPlacement& wanted = placement.layers.at(spec.layers[l].layer);
      if (!is_resident_source(wanted.source)) continue;
      Entry& entry = tables_[{l, wanted.source, wanted.peer}];
      if (entry.table) continue;
      const Shard shard = make_shard(spec, l, campaign.shard_map, campaign.ranks, campaign.rank);
      const auto origin = images.rows().origin(l, shard);
      const std::uint64_t rows = std::min(images.folds()[l].stored_pages * images.geometry().rows_per_page, shard.rows);
      const std::uint64_t before = read_process_memory().resident;
      try {
        entry.table = std::make_unique<ResidentTable>(device, spec, *origin, rows, wanted.source, wanted.peer);
      } catch (const EnvironmentError& error) {
        throw EnvironmentError(
            fmt::format("{}: layer {} in {}: {}", placement.name, spec.layers[l].layer, wanted.source, error.what()));
      }
      if (entry.table->host_bytes() > 0)
        entry.host_bytes = read_process_memory().resident - std::min(before, read_process_memory().resident);
    }
}

const ResidentTable& ResidentTables::at(std::size_t layer_index, const LayerPlacement& placement) const {
  return *tables_.at({layer_index, placement.source, placement.peer}).table;
}

std::uint64_t ResidentTables::measured_host_bytes(std::size_t layer_index, const LayerPlacement& placement) const {
  return tables_.at({layer_index, placement.source, placement.peer}).host_bytes;
}

}  // namespace slacktier
