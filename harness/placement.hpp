// Which tier each layer's table lives on: read from a placement file, or one of a campaign's.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/results.hpp"
#include "tier/remote_options.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct LayerPlacement {
  std::string source = "dram";            // "dram", "hbm", "peer", or a page source
  std::string peer;                       // of source "peer": the GPU that holds the table
  std::vector<std::string> wrappers;      // around a page source, outermost first: "shared:tenants=2" (tier/source.hpp)
  bool on_demand = false;                 // read "on-demand": only when the main stream has come to the layer
  bool drop_cache = false, hints = true;  // page_cache.drop, page_cache.hints: of sources that read through it
  RemoteOptions remote;                   // of sources that read from other nodes; what is empty, the campaign's run brings
  std::uint32_t disks = 1;                // disks of the image that page sources read from
  int threads = 1;                        // I/O threads per disk
  std::uint64_t cache_rows_per_rank = 0;  // GPU cache of this layer
  std::uint64_t cache_rows_reserved_per_rank = 0;  // what a running tier's cache may grow to; below the above: no more
};

struct Placement {
  std::string name;
  std::map<int, LayerPlacement> layers;  // by model layer
  std::string cache_policy = "clock";    // cache.policy: of every layer's directory
  std::string hot_rows;                  // cache.hot_rows: file of a static cache's rows; empty: learnt in the warm-up
  std::string skip_unseen;               // seen-set file: rows never seen are zeros, unread; empty: every row is delivered
  bool first_layer_first = true;         // order "layer-first": a layer's reads are submitted before the next is planned
  bool row_dedup = true, page_dedup = true;

  bool all_dram() const;
};

// `json` is the results of a placement envelope, or an element of a campaign's placements, where layer "all" stands for
// every layer that is not named. Throws UsageError naming `where`, field and fix: unknown keys, sources and policies, layers
// that the table does not have or that are missing.
Placement placement_from_json(const Json& json, const TableSpec& spec, const std::string& where);
Json to_json(const Placement& placement);

// Every layer that reads pages reads them from servers by `source` instead ("tcp", ...; empty: only layers that read from
// servers anyway, by the source they name). What a layer's own `remote` leaves empty comes from `remote`.
void read_from_servers(Placement& placement, const std::string& source, const RemoteOptions& remote);

}  // namespace slacktier
