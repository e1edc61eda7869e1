#include "harness/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "tier/control.hpp"
#include "tier/resident_table.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

LayerPlacement layer_placement(const LayerControl& control, JsonFields& fields, const std::string& k) {
  const std::string key = "layers." + k;
  LayerPlacement layer;
  layer.source = control.source.value_or(layer.source);
  layer.peer = control.peer.value_or("");
  layer.wrappers = control.wrappers.value_or(layer.wrappers);
  layer.on_demand = control.on_demand.value_or(false);
  layer.drop_cache = control.drop_cache.value_or(false);
  layer.hints = control.hints.value_or(true);
  layer.disks = control.disks.value_or(layer.disks);
  layer.threads = control.threads.value_or(layer.threads);
  if (control.cache_rows.size() > 1) fields.fail(key, "cache_rows_per_rank: one number for all ranks is needed");
  if (!control.cache_rows.empty()) layer.cache_rows_per_rank = control.cache_rows.front();
  if (is_resident_source(layer.source) && (control.wrappers || control.on_demand))
    fields.fail(key, fmt::format("wrappers and read belong to page sources; {} reads no pages", layer.source));
  if (control.delay)
    fields.fail(key,
                "delayed belongs to the control file of a running tier; a placement says \"wrappers\": [\"delayed:...\"]");
  if ((control.drop_cache || control.hints) && !uses_page_cache(layer.source))
    fields.fail(
        key, fmt::format("page_cache: source {} does not read through the page cache; buffered and mmap do", layer.source));
  layer.remote = control.remote.value_or(layer.remote);
  if (is_remote_source(layer.source) && control.disks)
    fields.fail(key, "disks belongs to sources that read an image on disks");
  layer.cache_rows_reserved_per_rank = control.cache_rows_reserved.value_or(0);
  return layer;
}

// Layer "all" as the layers that are not named.
Json with_all_layers(Json json, const TableSpec& spec) {
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_object()) return json;
  Json& layers = json["layers"];
  const auto all = layers.find("all");
  if (all == layers.end()) return json;
  const Json value = *all;
  layers.erase(all);
  for (const auto& layer : spec.layers) {
    const std::string k = std::to_string(layer.layer);
    if (!layers.contains(k)) layers[k] = value;
  }
  return json;
}

}  // namespace

bool Placement::all_dram() const {
  return std::all_of(layers.begin(), layers.end(), [](const auto& entry) { return entry.second.source == "dram"; });
}

Placement placement_from_json(const Json& json, const TableSpec& spec, const std::string& where) {
  const Json every_layer = with_all_layers(json, spec);
  JsonFields fields(every_layer, where);
  const Control control = read_control_fields(fields, spec);
  Placement placement;
  placement.name = "placement";
  fields.read("name", placement.name);
  for (const char* of_plans : {"gate", "predicted", "decision", "host_bytes"}) fields.value(of_plans);
  fields.finish();
  for (const auto& layer : spec.layers) {
    const auto given = control.layers.find(layer.layer);
    if (given == control.layers.end())
      fields.fail("layers", fmt::format("layer {} of table {} is missing", layer.layer, spec.name));
    placement.layers[layer.layer] = layer_placement(given->second, fields, std::to_string(layer.layer));
  }
  placement.cache_policy = control.policy.value_or(placement.cache_policy);
  placement.hot_rows = control.hot_rows.value_or("");
  placement.skip_unseen = control.skip_unseen.value_or("");
  placement.first_layer_first = control.first_layer_first.value_or(true);
  placement.row_dedup = control.row_dedup.value_or(true);
  placement.page_dedup = control.page_dedup.value_or(true);
  return placement;
}

void read_from_servers(Placement& placement, const std::string& source, const RemoteOptions& remote) {
  for (auto& [k, layer] : placement.layers) {
    if (is_resident_source(layer.source)) continue;
    if (!source.empty() && !is_remote_source(layer.source)) {
      layer.remote = remote;
      layer.disks = 1;
      layer.drop_cache = false;
    }
    if (!source.empty()) layer.source = source;
    if (!is_remote_source(layer.source)) continue;
    if (layer.remote.connect.empty()) layer.remote.connect = remote.connect;
    if (layer.remote.key_file.empty()) layer.remote.key_file = remote.key_file;
  }
}

Json to_json(const Placement& placement) {
  Json json;
  json["name"] = placement.name;
  json["layers"] = Json::object();
  for (const auto& [k, layer] : placement.layers) {
    Json& out = json["layers"][std::to_string(k)];
    out["source"] = layer.source;
    if (!layer.peer.empty()) out["peer"] = layer.peer;
    if (is_resident_source(layer.source)) continue;
    if (!layer.wrappers.empty()) out["wrappers"] = layer.wrappers;
    if (layer.on_demand) out["read"] = "on-demand";
    if (uses_page_cache(layer.source)) out["page_cache"] = {{"drop", layer.drop_cache}, {"hints", layer.hints}};
    if (is_remote_source(layer.source)) {
      Json& remote = out["remote"];
      if (!layer.remote.connect.empty()) remote["connect"] = layer.remote.connect;
      if (!layer.remote.key_file.empty()) remote["key_file"] = layer.remote.key_file;
      remote["granularity"] = to_string(layer.remote.granularity);
      if (layer.source == "rdma") {
        remote["device"] = layer.remote.device;
        if (layer.remote.gid_index >= 0) remote["gid_index"] = layer.remote.gid_index;
        remote["queue_pairs"] = layer.remote.queue_pairs;
      }
    } else {
      out["disks"] = layer.disks;
    }
    out["threads"] = layer.threads;
    out["cache_rows_per_rank"] = layer.cache_rows_per_rank;
    if (layer.cache_rows_reserved_per_rank > 0) out["cache_rows_reserved_per_rank"] = layer.cache_rows_reserved_per_rank;
  }
  json["cache"] = {{"policy", placement.cache_policy}};
  if (!placement.hot_rows.empty()) json["cache"]["hot_rows"] = placement.hot_rows;
  if (!placement.skip_unseen.empty()) json["skip_unseen"] = placement.skip_unseen;
  json["order"] = placement.first_layer_first ? "layer-first" : "interleaved";
  json["dedup"] = {{"rows", placement.row_dedup}, {"pages", placement.page_dedup}};
  return json;
}

}  // namespace slacktier
