#include "harness/cli/run_simulated.hpp"

#include <optional>

#include "platforms/program.hpp"
#include "reports/results.hpp"

namespace slacktier {

SimOptions sim_options(const std::string& reads, const std::string& gates) {
  SimOptions options;
  std::optional<Envelope> gates_file;
  if (!gates.empty()) gates_file = read_envelope(gates, "gates");
  const bool ours = !reads.empty() || gates_file;
  options.services = reads.empty() ? paper_services() : service_from_reads(read_envelope(reads, "reads"));
  options.costs = ours ? tier_costs(gates_file ? &*gates_file : nullptr) : paper_costs();
  options.stop = [] { return interrupted(); };
  return options;
}

}  // namespace slacktier
