// What slacktier-harness run was asked for.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "platforms/error.hpp"
#include "reports/results.hpp"
#include "tier/remote_options.hpp"

namespace slacktier {

struct RunArguments {
  std::string campaign = "quickstart", placement, windows, device = "cpu", gate = "auto", work = "spin", format = "table",
              gates, reads, report, out, scratch = "slacktier-scratch";
  std::vector<std::string> traces, disks;
  std::string token_map, control, rows, verify_sample, workloads, rank, sessions, q, blocks, block_steps, warm_steps, seed,
      prefill, prefill_chunk, output, source, granularity;
  RemoteOptions remote;
  std::uint64_t size = 0;
  std::uint64_t memory_limit = 0;
  int model_layers = 0;
  double step_ms = 0;
  bool top_up = false, dry_run = false, quiet = false, verbose = false, no_check = false, redact = false, list = false,
       no_graph = false, controller = false;
};

// "agent=FILE" or "FILE", whose name up to the first dot names the workload. Several files of one name form one workload.
void apply_traces(Campaign& campaign, const std::vector<std::string>& traces);

// The option's text, if any, as a whole number. Throws UsageError naming the option.
template <class T>
void apply_number(const std::string& text, const char* option, T& field) {
  if (text.empty()) return;
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used != text.size() || text[0] == '-' || value > std::numeric_limits<T>::max())
    throw UsageError(fmt::format("{} {}: a whole number is needed", option, text));
  field = static_cast<T>(value);
}

// The results' tables on stdout, in the format that was asked for.
void print_tables(const RunArguments& arguments, const Envelope& results, bool prefill_reads);

}  // namespace slacktier
