#include "harness/cli/run_simulated.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <optional>

#include "harness/paper_run.hpp"
#include "harness/sim.hpp"
#include "platforms/program.hpp"
#include "platforms/provenance.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace slacktier {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

int run_simulated(const RunArguments& arguments, const Invocation& invocation, const Campaign& campaign,
                  const StepModel& model, const std::string& out, const std::string& samples_dir) {
  if (!arguments.control.empty())
    throw UsageError("--control: a control file is followed by a live tier: leave it out with --device sim");
  SimOptions options = sim_options(arguments.reads, arguments.gates);
  options.model = model;
  options.token_map = arguments.token_map;
  options.samples_dir = samples_dir;
  options.controller = arguments.controller;
  options.quiet = arguments.quiet;
  if (!arguments.rank.empty()) options.ranks = {campaign.rank};
  Envelope results = simulate_campaign(campaign, options);
  results.provenance = provenance({"slacktier-harness run", invocation.argv, campaign.seed,
                                   static_cast<std::int64_t>(std::time(nullptr)), Json::object()});
  if (arguments.redact) redact(results);
  write_envelope(out, results);
  print_tables(arguments, results, false);
  std::fflush(stdout);
  fmt::print(stderr, "results: {}\n", out);
  return 0;
}

int run_paper_evaluation(const RunArguments& arguments, const Invocation& invocation) {
  if (arguments.device != "sim")
    throw UsageError(
        "campaign paper: the paper's machines are modelled: add --device sim; placement and ablations run live");
  PaperRunOptions options;
  Campaign traced;
  apply_traces(traced, arguments.traces);
  for (const Workload& workload : traced.workloads) {
    if (workload.name != "agent" && workload.name != "chat")
      throw UsageError(
          fmt::format("--trace {}: the paper's loads are agent and chat: agent=FILE, chat=FILE", workload.name));
    options.traces[workload.name] = workload.traces;
  }
  if (!arguments.workloads.empty())
    std::erase_if(options.loads, [&](const std::string& load) {
      return ("," + arguments.workloads + ",").find("," + load + ",") == std::string::npos;
    });
  if (options.loads.empty())
    throw UsageError(fmt::format("--workloads {}: the paper's loads are agent and chat", arguments.workloads));
  options.token_map = arguments.token_map;
  options.quiet = arguments.quiet;
  options.stop = [] { return interrupted(); };
  if (arguments.controller)
    throw UsageError("--controller: Table 9 of campaign paper has its rows; leave it out, or run another campaign");
  apply_number(arguments.seed, "--seed", options.seed);
  apply_number(arguments.warm_steps, "--warm-steps", options.warm_steps);
  apply_number(arguments.blocks, "--blocks", options.blocks);
  apply_number(arguments.block_steps, "--block-steps", options.block_steps);
  if (arguments.dry_run) {
    fmt::print(
        "campaign paper: nothing is staged or read; reads are modelled\nhost memory: up to {:.1f} GiB of directories\nruns "
        "{} "
        "modelled steps of each placement and load\n",
        directories_gib(load_table_spec("engram_v41")), options.blocks * options.block_steps);
    return 0;
  }
  PaperRun paper = run_paper(options);
  paper.results.provenance = provenance({"slacktier-harness run", invocation.argv, options.seed,
                                         static_cast<std::int64_t>(std::time(nullptr)), Json::object()});
  if (arguments.redact) redact(paper.results);
  const fs::path out = arguments.out.empty() ? fs::path(arguments.scratch) / "paper.results.json" : fs::path(arguments.out);
  write_envelope(out, paper.results);
  std::string markdown;
  for (const Table& table : paper_tables(paper)) {
    fmt::print("{}\n", render(table, parse_table_format(arguments.format)));
    markdown += render(table, TableFormat::markdown) + "\n";
  }
  if (!arguments.report.empty()) {
    fs::create_directories(arguments.report);
    write_text_file(fs::path(arguments.report) / "tables.md", markdown);
    for (const auto& [file, figure] : paper.figures) write_text_file(fs::path(arguments.report) / file, render_svg(figure));
  }
  std::fflush(stdout);
  fmt::print(stderr, "results: {}\n", out.string());
  return 0;
}

}  // namespace slacktier
