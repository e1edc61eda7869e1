#include "harness/campaign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <set>

#include "harness/campaigns/campaigns.hpp"
#include "platforms/error.hpp"
#include "reports/json.hpp"
#include "reports/paper.hpp"
#include "tier/json_fields.hpp"

namespace slacktier {
namespace {

// One line per campaign.
constexpr Campaign (*campaigns[])() = {
    quickstart_campaign,
    placement_campaign,
    ablations_campaign,
    remote_campaign,
};

Campaign campaign_from_json(const Json& json, const std::string& file) {
  JsonFields fields(json, file + ": ");
  Campaign campaign;
  campaign.name = file;
  fields.read("name", campaign.name);
  fields.read("summary", campaign.summary);
  fields.read("table", campaign.table);
  std::string shard_map = to_string(campaign.shard_map);
  fields.read("shard_map", shard_map);
  campaign.shard_map = parse_shard_map(shard_map);
  std::string prefill = "directory";
  fields.read("prefill", prefill);
  campaign.prefill_reads = parse_prefill(prefill, fields.place("prefill"));
  fields.read("prefill_chunk", campaign.prefill_chunk);
  fields.read("graph", campaign.graph);
  std::string output = to_string(campaign.output);
  fields.read("output", output);
  campaign.output = parse_output(output, fields.place("output"));
  fields.read("ranks", campaign.ranks);
  fields.read("rank", campaign.rank);
  fields.read("sessions", campaign.sessions);
  fields.read("tokens_per_session", campaign.tokens_per_session);
  fields.read("warm_steps", campaign.warm_steps);
  fields.read("blocks", campaign.blocks);
  fields.read("block_steps", campaign.block_steps);
  fields.read("lead_steps", campaign.lead_steps);
  fields.read("image_bytes", campaign.image_bytes);
  fields.read("seed", campaign.seed);
  fields.read("top_up", campaign.top_up);
  fields.read("check", campaign.check);
  std::size_t i = 0;
  for (const Json& entry : fields.list("workloads")) {
    Workload workload;
    const std::string place = fmt::format("{}[{}]", fields.place("workloads"), i++);
    if (entry.is_string()) {
      workload.name = entry.get<std::string>();
    } else {
      JsonFields of_workload(entry, place);
      of_workload.read("name", workload.name);
      for (const Json& trace : of_workload.list("traces")) {
        if (!trace.is_string()) of_workload.fail("traces", fmt::format("file names are needed, found {}", trace.dump()));
        workload.traces.push_back(trace.get<std::string>());
      }
      of_workload.finish();
    }
    campaign.workloads.push_back(workload);
  }
  const TableSpec spec = load_table_spec(campaign.table);
  i = 0;
  for (const Json& entry : fields.list("placements"))
    campaign.placements.push_back(placement_from_json(entry, spec, fmt::format("{}[{}]", fields.place("placements"), i++)));
  fields.finish();
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
    throw UsageError(fmt::format("{}: '{}'; use directory (no reads) or read", where, text));
  return text == "read";
}

void validate(const Campaign& campaign) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("campaign {}: {}", campaign.name, what));
  };
  if (campaign.workloads.empty()) refuse("no workloads; name at least one, e.g. \"agent\"");
  if (campaign.placements.empty() || !campaign.placements.front().all_dram())
    refuse("the first placement is the baseline and must have every layer in dram");
  if (!campaign.placements.front().skip_unseen.empty())
    refuse("the baseline delivers every row: skip_unseen is for the other placements");
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

namespace {

// Of remote tables the paper has slowdowns at B = 8 by load; of B = 128 and 256 only a range over all runs.
std::optional<PaperValue> paper_remote_value(const std::string& placement, const std::string& workload) {
  const char* field = placement == "both remote"                       ? "B8_uncached_percent"
                      : placement == "both remote, cache split evenly" ? "B8_cached_percent"
                                                                       : nullptr;
  if (field == nullptr || !paper_values().at("rdma").at(field).contains(workload)) return {};
  PaperValue value;
  value.label = "section 6.8: " + placement + ", B = 8";
  value.mean_pct = paper_values().at("rdma").at(field).at(workload).get<double>();
  return value;
}

}  // namespace

std::optional<PaperValue> paper_value(const Campaign& campaign, const std::string& placement, const std::string& workload) {
  if (campaign.table == "engram_v41" && campaign.sessions == 8 && campaign.tokens_per_session == 1)
    return paper_remote_value(placement, workload);
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

void require_one_placement(const Campaign& campaign, const std::string& option) {
  if (campaign.placements.size() == 2) return;
  throw UsageError(
      fmt::format("{}: it belongs to one placement, the campaign has {} beside the baseline: give the one with --placement",
                  option, campaign.placements.size() - 1));
}

}  // namespace slacktier
