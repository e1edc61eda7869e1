// A campaign: placements x workloads, run in shuffled interleaved blocks against the DRAM baseline.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/placement.hpp"
#include "reports/results_file.hpp"
#include "tier/output.hpp"
#include "tier/shard.hpp"

namespace slacktier {

struct Workload {
  std::string name;                 // "agent"
  std::vector<std::string> traces;  // token-session files; empty: the generator's sessions of kind `name`
};

struct Campaign {
  std::string name, summary;
  std::string table = "engram_v41";
  std::uint32_t ranks = 4, rank = 3;  // contiguous quarters: rank 3 holds only 4-gram heads and reads most
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t sessions = 128, tokens_per_session = 1;
  std::vector<Workload> workloads;
  std::vector<Placement> placements;  // the first is the baseline, all layers in DRAM
  std::uint64_t warm_steps = 2000;    // steps through the directories without reads before anything is measured
  std::uint32_t blocks = 10, block_steps = 40;
  std::uint32_t lead_steps =
      3;  // at each block's start, run and checked but not measured: another placement's run went before
  std::uint64_t image_bytes = std::uint64_t{2} << 30;  // all layers together; the image is scaled to it
  bool prefill_reads = false;          // prefill reads its pages live, timed apart; else it only passes the directories
  std::uint32_t prefill_chunk = 8192;  // tokens of the largest prefill chunk
  OutputFormat output = OutputFormat::bf16;  // numbers in which gathers deliver rows
  bool graph = true;    // a step replays a captured graph; else its operations are queued anew each step (eager)
  bool top_up = false;  // sessions of the generator when a trace ends; labelled
  bool check = true;    // checked mode: every gathered row and whole page checksums
  std::uint64_t seed = 1;

  std::uint64_t steps() const { return warm_steps + std::uint64_t{blocks} * (lead_steps + block_steps); }
};

// "directory" or "read" as prefill_reads; throws UsageError naming `where`.
bool parse_prefill(const std::string& text, const std::string& where);

// What the paper has for one placement of a campaign under a workload.
std::optional<PaperValue> paper_value(const Campaign& campaign, const std::string& placement, const std::string& workload);

// A built-in campaign by name, or one from a JSON file (a path that ends in ".json"; fields as above, in snake_case). Throws
// UsageError naming file, field and fix, or for an unknown name those there are.
Campaign load_campaign(const std::string& name_or_path);
std::vector<Campaign> built_in_campaigns();

// Throws UsageError naming the field when the values make no runnable campaign (no baseline first, fewer than 2 blocks,
// ...).
void validate(const Campaign& campaign);
// Throws UsageError naming `option`, which changes a placement while it runs, unless there is one beside the baseline.
void require_one_placement(const Campaign& campaign, const std::string& option);

}  // namespace slacktier
