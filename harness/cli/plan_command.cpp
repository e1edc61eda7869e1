// slacktier-harness plan: from windows, reads and misses to a placement.
#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <ctime>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/plan_tables.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/provenance.hpp"

namespace slacktier {
namespace {

struct PlanArguments {
  PlanFiles files;
  PlanSettings settings;
  std::vector<std::string> assume, prices;
  std::string out, format = "table";
  std::optional<double> prefill_ms;
  std::size_t most = 12;
  bool what_if = false, check = false;
};

// "dram=3.5,nvme=0.1" by source, a unit of money per GiB.
std::map<std::string, double> parse_prices(const std::vector<std::string>& parts) {
  std::map<std::string, double> prices;
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('=');
    double value = -1;
    const char* const end = part.data() + part.size();
    if (equals != std::string::npos && equals > 0) {
      const auto [last, error] = std::from_chars(part.data() + equals + 1, end, value);
      if (error != std::errc() || last != end) value = -1;
    }
    if (!(value >= 0))
      throw UsageError(fmt::format("--price {}: write SOURCE=PRICE per GiB, such as dram=3.5,uring=0.1", part));
    prices[part.substr(0, equals)] = value;
  }
  return prices;
}

int plan(PlanArguments a, const Invocation& invocation) {
  const TableFormat format = parse_table_format(a.format);
  for (const std::string& what : a.assume) {
    if (what != "windows" && what != "reads")
      throw UsageError(fmt::format("--assume-paper {}: windows or reads, or both: windows,reads", what));
    (what == "windows" ? a.files.paper_windows : a.files.paper_reads) = true;
  }
  a.settings.price_per_gib = parse_prices(a.prices);
  const PlanSources sources(a.files);
  const PlanInput input = sources.input(a.settings);
  const PlanOutcome outcome = plan_tables(input.problem, a.most);
  if (!a.out.empty()) {
    Envelope envelope = placement_envelope(input, outcome);
    ProvenanceInput facts{"slacktier-harness plan", invocation.argv, 0, std::time(nullptr), Json::object()};
    facts.facts["host"] = host_json(read_host_facts());
    envelope.provenance = provenance(facts);
    write_envelope(a.out, envelope);
  }
  if (format == TableFormat::text || format == TableFormat::markdown) {
    std::vector<std::string> places;
    for (const LayerChoice& choice : outcome.chosen.candidate.layers)
      places.push_back(choice.reads ? input.problem.reads[choice.offer].source
                                    : input.problem.residents[choice.offer].source);
    fmt::print("{}\n{}\n\n", decision_line(input, outcome), offered_by_engines(input.spec.hash, places));
  }
  fmt::print("{}\n", render(ranked_table(input, outcome, a.prefill_ms), format));
  if (a.what_if) fmt::print("{}\n", render(what_if_table(sources, a.settings), format));
  if (!a.out.empty()) {
    std::fflush(stdout);
    fmt::print(stderr, "placement: {}\n", a.out);
  }
  return a.check && outcome.decision != Decision::move ? 1 : 0;
}

}  // namespace

void add_plan_command(CLI::App& app, const Invocation& invocation, std::function<int()>& chosen) {
  auto arguments = std::make_shared<PlanArguments>();
  PlanArguments& a = *arguments;
  CLI::App* command =
      app.add_subcommand("plan", "Which table goes where and who gets the cache, from windows, reads and misses");
  command->add_option("--windows", a.files.windows, "Windows file of slacktier-probe windows");
  command
      ->add_option("--reads", a.files.reads, "Reads files of slacktier-iobench sweep: every entry is a way to read on offer")
      ->allow_extra_args(false);
  command->add_option("--misses", a.files.misses, "Misses files of slacktier-harness misses, one a shard map on offer")
      ->allow_extra_args(false);
  command->add_option("--assume-paper", a.assume, "Take the paper's windows, reads, or windows,reads instead of files")
      ->delimiter(',');
  command->add_option("--exposure", a.files.exposure, "Fit of exposure fit: kappa and the model's own error");
  command->add_option("--table", a.settings.table, "Table: a built-in name or a JSON file")->capture_default_str();
  command->add_option("--workload", a.settings.workload, "Of several workloads in the misses this one");
  command->add_option("--policy", a.settings.policy,
                      "Of several policies in the misses this one; default: clock, else the first");
  command->add_option("--sessions", a.settings.sessions, "Concurrent sessions B; default: the misses'");
  command->add_option("--tokens-per-session", a.settings.tokens_per_session,
                      "Tokens per session and step q; default: the misses'");
  command->add_option("--ranks-on-disk", a.settings.ranks_on_disk,
                      "Of several in the reads those with so many ranks on a disk");
  command->add_option("--tenants", a.settings.tenants, "Instances that share the disks")->check(CLI::Range(1, 1024));
  command->add_option("--cache-rows", a.settings.cache_rows, "GPU cache per rank in rows, all layers together")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_option("--resolve-ms", a.settings.resolve_ms, "Resolve time s; default: the paper's")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--mean-bound", a.settings.mean_bound_pct, "Slowdown of the mean step allowed, in %")
      ->capture_default_str();
  command->add_option("--p99-bound", a.settings.p99_bound_pct, "Slowdown of the p99 step allowed, in %")
      ->capture_default_str();
  command->add_option("--baseline", a.settings.baseline, "Where the tables are now: dram or hbm")->capture_default_str();
  command->add_option("--hbm-gib", a.settings.hbm_gib, "Device memory on offer for tables, all ranks together")
      ->check(CLI::PositiveNumber);
  command->add_option("--peer-gib", a.settings.peer_gib, "Other GPUs' memory on offer for tables")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--price", a.prices,
                   "Least cost instead of least host memory: price per GiB by source, such as dram=3.5,uring=0.1")
      ->delimiter(',');
  command->add_option("--prefill-ms", a.prefill_ms, "What a prefill chunk takes without reads: gives what its reads expose")
      ->check(CLI::PositiveNumber);
  command->add_option("--rows", a.most, "Plans in the ranked table")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_flag("--what-if", a.what_if, "Also plan larger tables, other batches, more tenants, more tokens a step");
  command->add_flag("--check", a.check, "Exit with 1 unless the decision is MOVE");
  command->add_option("-o,--out", a.out, "Placement file for slacktier-harness run --placement");
  command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  command->callback(
      [arguments, &invocation, &chosen] { chosen = [arguments, &invocation] { return plan(*arguments, invocation); }; });
}

}  // namespace slacktier
