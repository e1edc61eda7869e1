#include "iobench/tenants.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <sstream>

#include "platforms/program.hpp"

namespace slacktier {
namespace {

std::string read_as_tenant(const ChildProcess::Link& link, LoadOptions load_options, const std::vector<LayerPages>& pages,
                           MeasureOptions options) {
  Load load(std::move(load_options), pages);
  std::uint64_t batches = 0;
  double sum_us = 0;
  const auto take = [&](const BatchTime& time) {
    sum_us += static_cast<double>(time.end - time.begin) / 1e3;
    ++batches;
    link.announce();
    return !interrupted();
  };
  Nanos intended = monotonic_clock().now();
  while (!interrupted())
    if (options.period > 0)
      take(load.run(pages, batches, intended += options.period));
    else
      load.run_back_to_back(pages, batches, 1000, take);
  return fmt::format("{} {}", batches, batches > 0 ? sum_us / static_cast<double>(batches) : 0);
}

}  // namespace

TenantProcesses::TenantProcesses(std::uint32_t others, const LoadOptions& load, const std::vector<LayerPages>& pages,
                                 const MeasureOptions& options) {
  for (std::uint32_t i = 0; i < others; ++i) {
    LoadOptions own = load;
    own.seed += 1000003 * (std::uint64_t{i} + 1);
    processes_.push_back(std::make_unique<ChildProcess>(
        fmt::format("tenant process {}", i + 2),
        [own, pages, options](const ChildProcess::Link& link) { return read_as_tenant(link, own, pages, options); }));
  }
  for (const auto& process : processes_) process->wait_until_begun();
}

std::vector<TenantProcesses::Report> TenantProcesses::stop() {
  std::vector<Report> reports;
  for (const auto& process : processes_) {
    Report report;
    std::istringstream(process->stop()) >> report.batches >> report.batch_us;
    reports.push_back(report);
  }
  processes_.clear();
  return reports;
}

}  // namespace slacktier
