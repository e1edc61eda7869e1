#include "harness/campaign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <set>

#include "harness/campaigns/campaigns.hpp"
#include "platforms/error.hpp"
#include "reports/error.hpp"
#include "reports/json.hpp"
#include "reports/paper.hpp"

namespace slacktier {
namespace {

// One line per campaign.
constexpr Campaign (*campaigns[])() = {
    quickstart_campaign,
    placement_campaign,
    ablations_campaign,
};

Campaign campaign_from_json(const Json& json, const std::string& file) {
  static const std::set<std::string> known = {"name",        "summary",    "table",       "ranks",
                                              "rank",        "shard_map",  "sessions",    "tokens_per_session",
                                              "workloads",   "placements", "warm_steps",  "blocks",
                                              "block_steps", "lead_steps", "image_bytes", "top_up",
                                              "check",       "seed",       "prefill",     "prefill_chunk"};
  if (!json.is_object()) throw InputError(fmt::format("{}: a campaign is a JSON object", file));
  for (const auto& [key, value] : json.items())
    if (!known.contains(key))
      throw InputError(fmt::format("{}: unknown field '{}'; known are {}", file, key, fmt::join(known, ", ")));
  Campaign campaign;
  const auto number = [&](const char* key, auto& field) {
    if (!json.contains(key)) return;
    if (!json[key].is_number_unsigned() ||
        json[key].get<std::uint64_t>() > std::numeric_limits<std::decay_t<decltype(field)>>::max())
      throw InputError(fmt::format("{}: field {}: a whole number is needed, found {}", file, key, json[key].dump()));
    field = json[key].get<std::decay_t<decltype(field)>>();
  };
  const auto text = [&](const Json& object, const char* key, std::string& field) {
    if (!object.contains(key)) return;
    if (!object[key].is_string()) throw InputError(fmt::format("{}: field {}: a string is needed", file, key));
    field = object[key].get<std::string>();
  };
  const auto flag = [&](const char* key, bool& field) {
    if (!json.contains(key)) return;
    if (!json[key].is_boolean()) throw InputError(fmt::format("{}: field {}: true or false is needed", file, key));
    field = json[key].get<bool>();
  };
  campaign.name = file;
  text(json, "name", campaign.name);
  text(json, "summary", campaign.summary);
  text(json, "table", campaign.table);
  std::string shard_map = to_string(campaign.shard_map);
  text(json, "shard_map", shard_map);
  campaign.shard_map = parse_shard_map(shard_map);
  std::string prefill = "directory";
  text(json, "prefill", prefill);
  campaign.prefill_reads = parse_prefill(prefill, file + ": field prefill");
  number("prefill_chunk", campaign.prefill_chunk);
  number("ranks", campaign.ranks);
  number("rank", campaign.rank);
  number("sessions", campaign.sessions);
  number("tokens_per_session", campaign.tokens_per_session);
  number("warm_steps", campaign.warm_steps);
  number("blocks", campaign.blocks);
  number("block_steps", campaign.block_steps);
  number("lead_steps", campaign.lead_steps);
  number("image_bytes", campaign.image_bytes);
  number("seed", campaign.seed);
  flag("top_up", campaign.top_up);
  flag("check", campaign.check);
  for (const Json& entry : json.value("workloads", Json::array())) {
    Workload workload;
    if (entry.is_string()) {
      workload.name = entry.get<std::string>();
    } else {
      text(entry, "name", workload.name);
      for (const Json& trace : entry.value("traces", Json::array())) workload.traces.push_back(trace.get<std::string>());
    }
    campaign.workloads.push_back(workload);
  }
  const TableSpec spec = load_table_spec(campaign.table);
  std::size_t i = 0;
  for (const Json& entry : json.value("placements", Json::array()))
    campaign.placements.push_back(placement_from_json(entry, spec, fmt::format("{}: placements[{}]", file, i++)));
  return campaign;
}

}  // namespace

Campaign load_campaign(const std::string& name_or_path) {
  if (name_or_path.ends_with(".json")) {
    Campaign campaign = campaign_from_json(parse_json(read_text_file(name_or_path), name_or_path), name_or_path);
    validate(campaign);
    return campaign;
  }
  std::vector<std::string> names;
  for (const auto make : campaigns) {
    Campaign campaign = make();
    if (campaign.name == name_or_path) return campaign;
    names.push_back(campaign.name);
  }
  throw UsageError(fmt::format("unknown campaign '{}': use one of {}, or a file that ends in .json", name_or_path,
                               fmt::join(names, ", ")));
}

std::vector<Campaign> built_in_campaigns() {
  std::vector<Campaign> all;
  for (const auto make : campaigns) all.push_back(make());
  return all;
}

bool parse_prefill(const std::string& text, const std::string& where) {
  if (text != "directory" && text != "read")
    throw InputError(fmt::format("{}: '{}'; use directory (no reads) or read", where, text));
  return text == "read";
}

void validate(const Campaign& campaign) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("campaign {}: {}", campaign.name, what));
  };
  if (campaign.workloads.empty()) refuse("no workloads; name at least one, e.g. \"agent\"");
  if (campaign.placements.empty() || !campaign.placements.front().all_dram())
    refuse("the first placement is the baseline and must have every layer in dram");
  std::set<std::string> names;
  for (const auto& placement : campaign.placements)
    if (!names.insert(placement.name).second) refuse(fmt::format("two placements are named '{}'", placement.name));
  if (campaign.blocks < 2) refuse("blocks: at least 2, since intervals come from differences between blocks");
  if (campaign.block_steps < 2) refuse("block_steps: at least 2");
  if (campaign.sessions == 0 || campaign.sessions > 65536) refuse("sessions: from 1 to 65536");
  if (campaign.tokens_per_session == 0 || campaign.tokens_per_session > 64) refuse("tokens_per_session: from 1 to 64");
  if (campaign.prefill_chunk == 0 || campaign.prefill_chunk > 65536) refuse("prefill_chunk: from 1 to 65536 tokens");
  if (campaign.rank >= campaign.ranks)
    refuse(fmt::format("rank {} of {} ranks: ranks count from 0", campaign.rank, campaign.ranks));
}

std::optional<PaperValue> paper_value(const Campaign& campaign, const std::string& placement, const std::string& workload) {
  if (campaign.table != "engram_v41" || campaign.sessions != 128 || campaign.tokens_per_session != 1) return {};
  PaperValue value;
  if (placement == campaign.placements.front().name) {
    const PaperBaseline baseline = paper_table2_baseline();
    if (!baseline.mean_ms.contains(workload)) return {};
    value.label = "Table 2: host-DRAM baseline";
    value.mean_ms = baseline.mean_ms.at(workload);
    value.p99_ms = baseline.p99_ms.at(workload);
    value.host_gib = baseline.host_gib;
    return value;
  }
  const auto row = paper_row(placement);
  if (!row || !row->slowdown_pct.contains(workload)) return {};
  value.label = row->table + ": " + placement;
  value.mean_pct = row->slowdown_pct.at(workload);
  if (row->mean_ms.contains(workload)) value.mean_ms = row->mean_ms.at(workload);
  if (row->p99_ms.contains(workload)) value.p99_ms = row->p99_ms.at(workload);
  value.host_gib = row->host_gib;
  return value;
}

}  // namespace slacktier
