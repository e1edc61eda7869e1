// What a `misses` file holds, as structures: miss curves of a table under traffic, written by slacktier-harness misses, read
// by whoever plans or draws. Rows and pages are per rank; pages are per decode step (phase prefill: per chunk).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/plot.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

// One cache size. Rows that a step asks for twice count once. What a phase or a sampled run cannot say is empty, and
// `reason` says why.
struct MissPoint {
  std::uint64_t rows = 0;                             // cache capacity per rank
  std::optional<double> decode_hit, hit;              // shares, of decode lookups and of the phase's lookups
  std::map<int, std::optional<double>> hit_by_order;  // by n-gram order, of the phase's lookups
  std::optional<double> misses_mean, pages_mean, pages_p99, p_any_miss;
  std::string reason;
};

struct RankMisses {
  std::uint32_t rank = 0;
  std::optional<std::uint64_t> shard_rows, lookups, distinct_rows;  // lookups: of the counted steps
  std::vector<MissPoint> curve;                                     // by rising rows; not empty
};

struct LayerMisses {
  int k = 0;
  std::vector<RankMisses> ranks;  // by rank
};

struct MissesSampled {
  std::string method;  // "shards"
  double rate = 1;
  std::optional<double> error;  // one standard error of a hit rate, the largest of the curve
};

struct MissesResult {
  std::string workload;  // may be empty
  std::string policy = "lru";
  std::uint32_t sessions = 1, q = 1;
  std::string phase = "decode";  // "decode", "prefill", "all"
  std::optional<std::uint64_t> steps, warm_steps;
  std::optional<std::uint64_t> chunk_tokens;
  std::string cache = "shared";  // "per-session"
  std::uint64_t idle_lo = 0, idle_hi = 0;
  std::optional<MissesSampled> sampled;
  std::vector<LayerMisses> layers;  // by k
};

// All results of a misses envelope. Throws InputError when it is of another kind, names the field that is wrong, or a
// curve's rows do not rise.
std::vector<MissesResult> misses_results(const Envelope& envelope);
void set_misses_results(Envelope& envelope, const std::vector<MissesResult>& results);

// Of one quantity at `rows`, linear between the curve's points. Empty where a neighbour is, and beyond the last point unless
// the curve is flat from its last two points on.
std::optional<double> at_rows(const std::vector<MissPoint>& curve, double rows, std::optional<double> MissPoint::*quantity);

// One table a result: a line a layer, rank and capacity.
std::vector<Table> misses_tables(const Envelope& envelope);
// Hit rate against capacity; the phase's where it has no decode lookups. A line a policy, layer and rank; workloads and the
// like are named where results differ in them.
Plot misses_plot(const Envelope& envelope);

}  // namespace slacktier
