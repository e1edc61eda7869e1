// What may change while a tier runs, and the file that says so.
//
// The file is JSON, {"schema": "slacktier/control/1.0", "results": {…}}; a placement file is one, too (same fields, fewer of
// them). Every field of the results may be left out and then keeps its value:
//   layers       {"K": {…}} by model layer; "all" stands for every layer that is not named:
//     source, disks, threads   a source that the tier has opened, for this layer or another one
//     cache_rows_per_rank      rows of the GPU cache, up to those reserved: one number, or one for each rank
//     delayed                  {"latency_us": …, "gb_per_s": …} of the wrapper `delayed` around the layer's source
//     remote                   {"connect": "host:port,...", "key_file": ..., "granularity": "page" | "record"} of a source
//                              that the tier has opened
//     peer, wrappers, read, page_cache, cache_rows_reserved_per_rank, and cache.policy   fixed when the tier is made: may
//     only
//                              repeat what holds
//   order        "layer-first" or "interleaved"
//   dedup        {"rows": true|false, "pages": true|false}
//   watchdog_ms  a layer whose pages are not in by then is given up
// name, gate, predicted, decision and host_bytes of a placement change nothing.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/clock.hpp"
#include "tier/json_fields.hpp"
#include "tier/source.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct LayerControl {
  std::optional<std::string> source, peer;
  std::optional<std::vector<std::string>> wrappers;
  std::optional<bool> on_demand, drop_cache, hints;
  std::optional<LinkDelay> delay;
  std::optional<std::uint32_t> disks;
  std::optional<int> threads;
  std::vector<std::uint64_t> cache_rows;  // one for all ranks, or one for each; empty: not given
  std::optional<std::uint64_t> cache_rows_reserved;
  std::optional<RemoteOptions> remote;
};

struct Control {
  std::map<int, LayerControl> layers;  // by model layer
  std::optional<std::string> policy, hot_rows, skip_unseen;
  std::optional<bool> first_layer_first, row_dedup, page_dedup;
  std::optional<Nanos> watchdog;
};

// Reads the fields that placements and control files share; those of `fields` that it does not know are left to the caller,
// who ends with finish(). Throws UsageError naming place and fix: unknown or malformed fields, sources and policies, layers
// that the table does not have.
Control read_control_fields(JsonFields& fields, const TableSpec& spec);

// The text of a control or placement file. Throws UsageError naming `file`, line or field.
Control parse_control(std::string_view text, const std::string& file, const TableSpec& spec);

// Watches one file. Writers replace it as a whole (write another, rename it); one that is caught half written is looked at
// again when it has changed again.
class ControlFile {
 public:
  explicit ControlFile(std::string path) : path_(std::move(path)) {}

  enum class News { none, changed, gone, unreadable };
  // One stat where nothing changed since the last call. `changed` has read the text; `gone` is told once.
  News look();
  const std::string& text() const { return text_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_, text_;
  bool there_ = false;
  struct stat last_ = {};
};

}  // namespace slacktier
