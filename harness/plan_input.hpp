// From windows, reads and misses files to a PlanProblem, with what does not fit together refused and what is assumed said.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/planner.hpp"
#include "reports/exposure_fit.hpp"
#include "reports/misses_file.hpp"
#include "reports/reads_file.hpp"
#include "reports/results.hpp"
#include "reports/windows_file.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct PlanFiles {
  std::string windows;
  std::vector<std::string> reads, misses;
  std::string exposure;                             // of exposure fit; empty: kappa 0 and an assumed error
  bool paper_windows = false, paper_reads = false;  // the paper's instead of files
};

struct PlanSettings {
  std::string table = "engram_v41", workload, policy, baseline = "dram";
  std::optional<std::uint32_t> sessions, tokens_per_session;  // B, q; default: those of the misses
  std::optional<std::int64_t> ranks_on_disk;
  std::uint32_t tenants = 1;
  double cache_rows = 1e6;  // per rank, all layers together
  double table_factor = 1;  // of the tables' rows
  std::optional<double> resolve_ms;
  double mean_bound_pct = 1, p99_bound_pct = 2;
  std::optional<double> hbm_gib, peer_gib;  // room for tables, all ranks; empty: not on offer
  std::map<std::string, double> price_per_gib;
};

// Pages and read time of one prefill chunk with a candidate's cache. Empty: not measured.
struct PrefillCost {
  std::uint64_t chunk_tokens = 0;
  double pages = 0, read_ms = 0;  // slowest rank, all layers
  bool extrapolates = false;
};

struct PlanInput {
  PlanProblem problem;
  TableSpec spec;
  std::uint32_t sessions = 1, tokens_per_session = 1;
  std::string model, workload, policy;
  std::vector<std::string> labels;             // where things come from, for the tables' heads
  std::vector<Warning> warnings;               // what is assumed, scaled or beyond what was measured
  std::vector<std::vector<MissLine>> prefill;  // by layer and rank; empty: not measured
  std::uint64_t prefill_tokens = 0;

  std::optional<PrefillCost> prefill_cost(const Candidate& candidate) const;
};

// The files, read and checked once; problems of several settings are made from them.
class PlanSources {
 public:
  // Throws InputError naming file and field: unknown schema, another kind.
  explicit PlanSources(const PlanFiles& files);

  // Throws InputError: layers without a window, failed windows, unstamped reads, layers without a fit, files of different
  // tables, ranks, or tokens a session and step, a workload that is not there or not named among several, mixed ranks on a
  // disk.
  PlanInput input(const PlanSettings& settings) const;

 private:
  void add_windows(PlanInput& input, const PlanSettings& settings) const;
  void add_misses(PlanInput& input, const PlanSettings& settings) const;
  void add_reads(PlanInput& input, const PlanSettings& settings) const;
  void add_hosts(PlanInput& input) const;

  PlanFiles files_;
  std::optional<Envelope> windows_;
  std::vector<Envelope> reads_, misses_;
  std::optional<ExposureFit> exposure_;
};

}  // namespace slacktier
