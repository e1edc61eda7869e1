// What traffic asks of a table's caches: hit rates and pages per step against cache capacity, for each layer and rank, from
// token sessions. Only row numbers move: no table, no pages, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/misses_file.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct MissesOptions {
  std::string table = "engram_v41";
  std::string token_map;                // of tables that compress their vocabulary
  std::vector<std::string> traces;      // session files, or one "generated:agent" or "generated:chat", which needs `steps`
  std::string workload;                 // name for the file
  std::vector<int> layers;              // model layers; empty: all of the table
  std::vector<std::uint32_t> on_ranks;  // which of the ranks; empty: all
  std::uint32_t ranks = 4;
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t page_bytes = 4096;
  std::uint32_t sessions = 64, q = 1;
  std::vector<std::string> policies = {"lru"};  // "lru": all capacities in one pass; others: cache_policies()
  std::vector<std::uint64_t> capacities;        // rows per rank; 0: no cache; in any order
  std::string phase = "decode";                 // what is counted: "decode", "prefill", "all"; both always pass the caches
  std::uint64_t steps = 0;                      // with warm-up; 0: until a session is wanted and none is left
  std::uint64_t warm_steps = 400;
  std::uint64_t chunk_tokens = 0;          // prefill in chunks of so many tokens; 0: as many as a step decodes, 8192 where
                                           // prefill is counted
  bool per_session = false;                // a cache of capacity / sessions for each session, empty at its begin; lru only
  std::uint64_t idle_lo = 0, idle_hi = 0;  // steps that a session pauses between two turns
  double sample = 1;                       // share of the rows that is followed (SHARDS); capacities are scaled
  // A cache that a sample leaves fewer rows than this says little of the capacity that it stands for: such capacities (lru,
  // shared) are followed on their own, with as large a share as it takes.
  std::uint64_t least_sampled_rows = 8000;
  std::vector<std::string> train;  // sessions whose hottest rows static caches hold; empty: those of the warm-up
  std::uint64_t seed = 1;
  unsigned threads = 1;
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;      // for the recorded rows of policies other than lru
  std::function<void(std::uint64_t, std::uint64_t)> watch;  // steps done and in all (0: unknown); may throw
};

struct MissesRun {
  std::vector<MissesResult> results;  // one a policy
  std::vector<Warning> warnings;
  std::string description;                 // of the sessions used
  std::uint64_t sessions = 0, tokens = 0;  // started, decoded and prefilled
  std::uint64_t lookups = 0;               // of all layers and ranks, after dedup within steps
};

// Throws UsageError for options and sessions that cannot be used, and when recorded rows exceed memory_bytes.
MissesRun measure_misses(const MissesOptions& options);

// The capacities of a curve where none are asked for: 0 and from 10,000 to 5 M rows.
std::vector<std::uint64_t> default_capacities();

}  // namespace slacktier
