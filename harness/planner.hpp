// The decision: which table lives where, and who gets the cache, so that decode is slowed by no more than a bound. All that
// is known stands in a PlanProblem (harness/plan_input.hpp makes it from files); planning is arithmetic on it and
// deterministic. Times in ms, reads in pages per rank and step, memory in bytes per node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/samples.hpp"

namespace slacktier {

constexpr double bytes_per_gib = 1024.0 * 1024 * 1024;

// Pages that one rank reads each step of one layer, with a cache of so many rows; linear between the points.
struct MissLinePoint {
  double rows = 0, pages = 0;
  double spread = 0;  // standard deviation over steps
  double error = 0;   // half of the 95% interval of `pages`: sampling, number of steps
};
using MissLine = std::vector<MissLinePoint>;  // by rising rows, at least one
// Never rises: a larger cache does not read more. Beyond the last point its value.
MissLinePoint pages_at(const MissLine& line, double rows);

struct PlanLayer {
  int k = 0;
  double window_ms = 0, lo_ms = 0, hi_ms = 0;  // the window and its 95% interval
  std::vector<std::vector<MissLine>> misses;   // by shard map (as PlanProblem::shard_maps), then rank
  double table_bytes = 0;                      // all ranks
  double page_bytes = 0;                       // the same laid out in pages
  double directory_bytes = 0;                  // all ranks: what a layer that is read in pages keeps on the host
};

// T_k = a + sum of b * pages, of one layer on one offer.
struct ReadLine {
  double a_ms = 0;
  std::map<int, double> b_ms;  // by layer
  double error_ms = 0;         // half of the 95% interval of a fitted mean
  double spread = 0;           // standard deviation of T over batches, as a share of T
  // Now and then a device holds a batch for long: in which share of batches (95% interval), and for how long then.
  double rare = 0, rare_lo = 0, rare_hi = 0, rare_ms = 0;
  std::map<int, std::pair<double, double>> range;  // pages that were measured
};

// A way to read pages: what one entry of a reads file measured.
struct ReadOffer {
  std::string source;  // "uring", "rdma", …
  std::string name;    // "uring, 1 disk, 1 thread"
  std::uint32_t disks = 1;
  int threads = 1, ranks_on_disk = 1, tenants = 1;
  std::map<int, ReadLine> lines;  // by layer
  bool p99_known = true;          // the spread comes from enough batches for a p99
};

// A place that holds a whole table: "dram", "hbm" or "peer".
struct ResidentOffer {
  std::string source;
  double capacity_bytes = 0;  // room for tables, all ranks; 0: as much as is wanted
  double cost_ms = 0;         // what a layer's gather from there takes longer than from the baseline's place
};

struct PlanProblem {
  std::vector<PlanLayer> layers;  // in depth order
  std::vector<std::string> shard_maps{"contiguous"};
  std::uint32_t ranks = 1;
  std::vector<ResidentOffer> residents;  // the first is the baseline
  std::vector<ReadOffer> reads;
  double cache_rows = 0;  // budget per rank, over all layers
  double resolve_ms = 0;
  Interval kappa_ms;
  double model_error_ms = 0;               // half of the 95% interval of the exposure model itself
  double step_ms = 0, step_spread_ms = 0;  // the baseline's step
  double mean_bound_pct = 1, p99_bound_pct = 2;
  bool p99_known = true;                        // of the misses and the baseline's step
  std::map<std::string, double> price_per_gib;  // by source; empty: host memory alone counts
  double read_factor = 1;                       // tenants that the reads were not measured with: pages read for each of ours
};

// The p99 of a normal distribution, in standard deviations from its mean.
constexpr double p99_in_deviations = 2.3263478740408408;
// The baseline's p99 step.
inline double baseline_p99_ms(const PlanProblem& problem) {
  return problem.step_ms + p99_in_deviations * problem.step_spread_ms;
}

struct LayerChoice {
  bool reads = false;
  std::size_t offer = 0;  // in reads or in residents
  double cache_rows = 0;  // per rank
  bool operator==(const LayerChoice&) const = default;
};
struct Candidate {
  std::size_t shard_map = 0;
  std::vector<LayerChoice> layers;
  bool operator==(const Candidate&) const = default;
};

struct Prediction {
  double mean_ms = 0, p99_ms = 0;        // slowdown: of the mean step; p99 step against the baseline's p99
  double lo_ms = 0, hi_ms = 0;           // 95% interval of the mean; equal to it until interval_of is asked
  std::vector<double> read_ms, late_ms;  // mean T_k of the slowest rank; s + T_k - W_k, negative: headroom
  std::size_t binding = 0;               // the layer that is latest, or has the least headroom
  bool any_read = false, extrapolates = false, p99_known = true;
};

struct Plan {
  Candidate candidate;
  Prediction predicted;
  double host_bytes = 0, device_bytes = 0, disk_bytes = 0, cost = 0;
};

// All candidates: each shard map, every way to give layers to offers (above 4 layers: the first ones resident in one place,
// the others on one offer), and the cache split among the layers that read: none, eighths for two of them, quarters for
// three, equal parts of the first 1, 2, … for more. Layers on one source share one offer. Places too small are left out.
std::vector<Candidate> candidates(const PlanProblem& problem);

// What a candidate needs and costs. `interval`: with lo_ms and hi_ms, which takes ten times as long.
Plan evaluate(const PlanProblem& problem, const Candidate& candidate, bool interval = false);

// Whether `a` stands before `b`: less of what is counted (the baseline's memory, host or device; or cost where prices are
// given; differences below 0.5% of the tables count as none), less of host and device memory together, then the shorter
// mean, fewer disks, threads, cached rows, more headroom.
bool ranks_before(const PlanProblem& problem, const Plan& a, const Plan& b);

// Mean and p99 within the bounds; certainly: the mean's whole interval, and a p99 that is known.
bool within(const PlanProblem& problem, const Plan& plan);
bool certainly_within(const PlanProblem& problem, const Plan& plan);

enum class Decision { move, keep, unsure };
const char* to_string(Decision decision);  // "MOVE", "KEEP", "UNSURE"

struct PlanOutcome {
  Decision decision = Decision::keep;
  Plan baseline;
  Plan chosen;                      // of KEEP: the nearest to the bound
  std::vector<Plan> ranked;         // those within the bounds first, each with its interval
  std::vector<std::string> unbind;  // what would take the binding layer's wait away
  std::size_t considered = 0;
};

// MOVE: the first plan in rank that is certainly within the bounds and needs less than the baseline. UNSURE: none is
// certain, this one is within the bounds. KEEP: none is, and `chosen` is the one that exceeds them least. `most` plans are
// ranked.
PlanOutcome plan_tables(const PlanProblem& problem, std::size_t most = 12);

// "L1 dram, L14 uring (2 disks, 1 thread, 500,000 rows); striped"
std::string describe(const PlanProblem& problem, const Candidate& candidate);

// What released engines offer of a placement of such a table, in a sentence with source. `hash` is the table's family;
// `sources` the layers' sources.
std::string offered_by_engines(const std::string& hash, const std::vector<std::string>& sources);

}  // namespace slacktier
