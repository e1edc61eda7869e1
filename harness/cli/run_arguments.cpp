#include "harness/cli/run_arguments.hpp"

#include <algorithm>
#include <filesystem>

#include "reports/results_table.hpp"
#include "reports/table.hpp"

namespace slacktier {

void apply_traces(Campaign& campaign, const std::vector<std::string>& traces) {
  if (traces.empty()) return;
  campaign.workloads.clear();
  for (const auto& trace : traces) {
    const auto equals = trace.find('=');
    const std::string path = equals == std::string::npos ? trace : trace.substr(equals + 1);
    const std::string file = std::filesystem::path(path).filename().string();
    const std::string name = equals == std::string::npos ? file.substr(0, file.find('.')) : trace.substr(0, equals);
    auto found =
        std::find_if(campaign.workloads.begin(), campaign.workloads.end(), [&](const auto& w) { return w.name == name; });
    if (found == campaign.workloads.end()) found = campaign.workloads.insert(found, Workload{name, {}});
    found->traces.push_back(path);
  }
}

void print_tables(const RunArguments& arguments, const Envelope& results, bool prefill_reads) {
  const TableFormat format = parse_table_format(arguments.format);
  const Table overhead = format == TableFormat::text ? overhead_table(results) : full_table(results);
  fmt::print("{}\n", render(overhead, format));
  if (arguments.verbose || format == TableFormat::text) fmt::print("{}\n", render(layer_table(results), format));
  if (prefill_reads && (arguments.verbose || format == TableFormat::text))
    fmt::print("{}\n", render(prefill_table(results), format));
}

}  // namespace slacktier
