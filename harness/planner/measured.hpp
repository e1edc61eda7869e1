// Entries of measured files as the planner takes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/planner.hpp"
#include "reports/misses_file.hpp"
#include "reports/reads_file.hpp"

namespace slacktier::planner {

// The decode result that is meant: of the workload (the only one when not named), the policy (when not named the tier's
// default, else the first), and of several sessions and tokens a step those wanted, else the nearest. Throws InputError
// naming file, what is asked for and what there is; tokens a session and step that differ from those asked for are refused.
const MissesResult& decode_misses(const std::vector<MissesResult>& results, const std::string& workload,
                                  const std::string& policy, std::optional<std::uint32_t> sessions,
                                  std::optional<std::uint32_t> tokens_per_session, const std::string& file);
// The prefill result that goes with it; null: not measured.
const MissesResult* prefill_misses(const std::vector<MissesResult>& results, const MissesResult& decode);

// Curves of a layer by rank, pages times `factor`. `p99_known` becomes false where a curve has no p99. Throws InputError
// when the layer is missing.
std::vector<MissLine> miss_lines(const MissesResult& result, int k, double factor, const std::string& file, bool& p99_known);

struct MeasuredReads {
  ReadOffer offer;
  std::string unsteady;  // why these times were not at rest; empty: they were, or nobody looked
  bool source_is_remote = false;
};
// Entries that have a fit for every layer. Throws InputError for unstamped reads, and when no entry is left.
std::vector<MeasuredReads> measured_reads(const Envelope& envelope, const std::vector<PlanLayer>& layers);
// The paper's local NVMe (4 ranks on a disk) and RDMA. Throws InputError for other layers than 1 and 14.
std::vector<MeasuredReads> paper_reads(const std::vector<PlanLayer>& layers);

}  // namespace slacktier::planner
