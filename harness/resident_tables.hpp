// The resident tables of a run, each made once for all placements that keep a layer in the same place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "harness/campaign.hpp"
#include "harness/images.hpp"
#include "platforms/device.hpp"
#include "tier/resident_table.hpp"

namespace slacktier {

class ResidentTables {
 public:
  // Fills a table for each layer and place that the campaign's placements name. Throws as ResidentTable, naming the
  // placement.
  ResidentTables(Device& device, const TableSpec& spec, const Campaign& campaign, const Images& images);

  const ResidentTable& at(std::size_t layer_index, const LayerPlacement& placement) const;
  // Host memory that making it took, as measured; 0 for tables elsewhere.
  std::uint64_t measured_host_bytes(std::size_t layer_index, const LayerPlacement& placement) const;

 private:
  struct Entry {
    std::unique_ptr<ResidentTable> table;
    std::uint64_t host_bytes = 0;
  };
  using Key = std::tuple<std::size_t, std::string, std::string>;  // layer, source, peer
  std::map<Key, Entry> tables_;
};

}  // namespace slacktier
