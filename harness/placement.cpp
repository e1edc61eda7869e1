#include "harness/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "platforms/error.hpp"
#include "reports/error.hpp"
#include "tier/directory.hpp"
#include "tier/source.hpp"

namespace slacktier {
namespace {

void refuse_unknown_keys(const Json& object, const std::set<std::string>& known, const std::string& where) {
  if (!object.is_object()) throw InputError(fmt::format("{}: an object is needed", where));
  for (const auto& [key, value] : object.items())
    if (!known.contains(key))
      throw InputError(fmt::format("{}: unknown field '{}'; known are {}", where, key, fmt::join(known, ", ")));
}

template <class T>
T number_field(const Json& object, const char* key, T fallback, std::uint64_t largest, const std::string& where) {
  if (!object.contains(key)) return fallback;
  const Json& value = object[key];
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > largest)
    throw InputError(
        fmt::format("{}.{}: a whole number from 0 to {} is needed, found {}", where, key, largest, value.dump()));
  return static_cast<T>(value.get<std::uint64_t>());
}

bool flag_field(const Json& object, const char* key, bool fallback, const std::string& where) {
  if (!object.contains(key)) return fallback;
  if (!object[key].is_boolean())
    throw InputError(fmt::format("{}.{}: true or false is needed, found {}", where, key, object[key].dump()));
  return object[key].get<bool>();
}

void read_wrappers(const Json& json, LayerPlacement& layer, const std::string& where) {
  if (!json.contains("wrappers")) return;
  const Json& list = json["wrappers"];
  if (!list.is_array())
    throw InputError(fmt::format("{}.wrappers: a list of texts is needed, found {}", where, list.dump()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string at = fmt::format("{}.wrappers[{}]", where, i);
    if (!list[i].is_string()) throw InputError(fmt::format("{}: a text is needed, found {}", at, list[i].dump()));
    layer.wrappers.push_back(list[i].get<std::string>());
    try {
      check_wrapper(layer.wrappers.back());
    } catch (const UsageError& error) {
      throw InputError(fmt::format("{}: {}", at, error.what()));
    }
  }
}

void read_page_cache(const Json& json, LayerPlacement& layer, const std::string& where) {
  if (!json.contains("page_cache")) return;
  const std::string at = where + ".page_cache";
  refuse_unknown_keys(json["page_cache"], {"drop", "hints"}, at);
  if (!uses_page_cache(layer.source))
    throw InputError(
        fmt::format("{}: source {} does not read through the page cache; buffered and mmap do", at, layer.source));
  layer.drop_cache = flag_field(json["page_cache"], "drop", false, at);
  layer.hints = flag_field(json["page_cache"], "hints", true, at);
}

LayerPlacement layer_from_json(const Json& json, const std::string& where) {
  refuse_unknown_keys(json, {"source", "wrappers", "read", "page_cache", "disks", "threads", "cache_rows_per_rank"}, where);
  LayerPlacement layer;
  layer.source = json.value("source", std::string("dram"));
  auto known = source_names();
  known.emplace_back("dram");
  if (std::find(known.begin(), known.end(), layer.source) == known.end())
    throw InputError(
        fmt::format("{}.source: unknown source '{}'; use one of {}", where, layer.source, fmt::join(known, ", ")));
  layer.disks = number_field<std::uint32_t>(json, "disks", 1, 64, where);
  layer.threads = number_field<int>(json, "threads", 1, 64, where);
  layer.cache_rows_per_rank = number_field<std::uint64_t>(json, "cache_rows_per_rank", 0, UINT64_MAX, where);
  if (layer.source != "dram" && (layer.disks == 0 || layer.threads == 0))
    throw InputError(fmt::format("{}: source {} needs at least one disk and one thread", where, layer.source));
  read_wrappers(json, layer, where);
  read_page_cache(json, layer, where);
  if (json.contains("read")) {
    const Json& read = json["read"];
    if (read != "prefetch" && read != "on-demand")
      throw InputError(fmt::format("{}.read: {}; use prefetch or on-demand", where, read.dump()));
    layer.on_demand = read == "on-demand";
  }
  if (layer.source == "dram" && (!layer.wrappers.empty() || layer.on_demand))
    throw InputError(fmt::format("{}: wrappers and read belong to page sources; dram reads no pages", where));
  return layer;
}

}  // namespace

bool Placement::all_dram() const {
  return std::all_of(layers.begin(), layers.end(), [](const auto& entry) { return entry.second.source == "dram"; });
}

Placement placement_from_json(const Json& json, const TableSpec& spec, const std::string& where) {
  refuse_unknown_keys(json, {"name", "layers", "cache", "order", "dedup", "gate", "predicted", "decision", "host_bytes"},
                      where);
  Placement placement;
  placement.name = json.value("name", std::string("placement"));
  if (!json.contains("layers")) throw InputError(fmt::format("{}: field 'layers' is missing", where));
  std::vector<int> table_layers;
  for (const auto& layer : spec.layers) table_layers.push_back(layer.layer);
  if (json["layers"].contains("all"))
    for (const int k : table_layers) placement.layers[k] = layer_from_json(json["layers"]["all"], where + ".layers.all");
  for (const auto& [key, value] : json["layers"].items()) {
    if (key == "all") continue;
    const std::string at = fmt::format("{}.layers.{}", where, key);
    const auto found =
        std::find_if(table_layers.begin(), table_layers.end(), [&](int k) { return std::to_string(k) == key; });
    if (found == table_layers.end())
      throw InputError(
          fmt::format("{}: table {} has no layer {}; its layers are {}", at, spec.name, key, fmt::join(table_layers, ", ")));
    placement.layers[*found] = layer_from_json(value, at);
  }
  for (const int k : table_layers)
    if (!placement.layers.contains(k))
      throw InputError(fmt::format("{}.layers: layer {} of table {} is missing", where, k, spec.name));
  if (json.contains("cache")) {
    refuse_unknown_keys(json["cache"], {"policy"}, where + ".cache");
    placement.cache_policy = json["cache"].value("policy", placement.cache_policy);
    const auto policies = directory_policies();
    if (std::find(policies.begin(), policies.end(), placement.cache_policy) == policies.end())
      throw InputError(fmt::format("{}.cache.policy: unknown policy '{}'; use one of {}", where, placement.cache_policy,
                                   fmt::join(policies, ", ")));
  }
  const std::string order = json.value("order", std::string("layer-first"));
  if (order != "layer-first" && order != "interleaved")
    throw InputError(fmt::format("{}.order: '{}'; use layer-first or interleaved", where, order));
  placement.first_layer_first = order == "layer-first";
  if (json.contains("dedup")) {
    refuse_unknown_keys(json["dedup"], {"rows", "pages"}, where + ".dedup");
    placement.row_dedup = json["dedup"].value("rows", true);
    placement.page_dedup = json["dedup"].value("pages", true);
  }
  return placement;
}

Json to_json(const Placement& placement) {
  Json json;
  json["name"] = placement.name;
  json["layers"] = Json::object();
  for (const auto& [k, layer] : placement.layers) {
    Json& out = json["layers"][std::to_string(k)];
    out["source"] = layer.source;
    if (layer.source == "dram") continue;
    if (!layer.wrappers.empty()) out["wrappers"] = layer.wrappers;
    if (layer.on_demand) out["read"] = "on-demand";
    if (uses_page_cache(layer.source)) out["page_cache"] = {{"drop", layer.drop_cache}, {"hints", layer.hints}};
    out["disks"] = layer.disks;
    out["threads"] = layer.threads;
    out["cache_rows_per_rank"] = layer.cache_rows_per_rank;
  }
  json["cache"] = {{"policy", placement.cache_policy}};
  json["order"] = placement.first_layer_first ? "layer-first" : "interleaved";
  json["dedup"] = {{"rows", placement.row_dedup}, {"pages", placement.page_dedup}};
  return json;
}

}  // namespace slacktier
