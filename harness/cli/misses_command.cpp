// slacktier-harness misses: hit rates and pages per step against cache capacity, from token sessions.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>

#include "harness/cache_policy.hpp"
#include "harness/cli/commands.hpp"
#include "harness/misses.hpp"
#include "platforms/error.hpp"
#include "platforms/host.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"
#include "platforms/provenance.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"
#include "tier/pages.hpp"

namespace slacktier {
namespace {

struct MissesArguments {
  MissesOptions options;
  std::vector<std::string> policies;
  std::string shard_map = "contiguous", cache = "shared", idle, format = "table", out, plot;
  bool quiet = false, redact = false, list = false;
};

// "1:6" or "3".
void apply_idle(const std::string& text, MissesOptions& options) {
  if (text.empty()) return;
  const auto colon = text.find(':');
  const std::string lo = text.substr(0, colon), hi = colon == std::string::npos ? lo : text.substr(colon + 1);
  if (lo.empty() || hi.empty() || (lo + hi).find_first_not_of("0123456789") != std::string::npos || (lo + hi).size() > 12)
    throw UsageError(fmt::format("--idle {}: steps as LEAST:MOST are needed, such as 30:200", text));
  options.idle_lo = std::stoull(lo);
  options.idle_hi = std::stoull(hi);
}

int run(const MissesArguments& arguments, const Invocation& invocation) {
  if (arguments.list) {
    for (const std::string& name : cache_policies()) fmt::print("{}\n", name);
    return 0;
  }
  const TableFormat format = parse_table_format(arguments.format);
  MissesOptions options = arguments.options;
  if (!arguments.policies.empty()) options.policies = arguments.policies;
  options.shard_map = parse_shard_map(arguments.shard_map);
  if (arguments.cache != "shared" && arguments.cache != "per-session")
    throw UsageError(fmt::format("--cache {}: use shared or per-session", arguments.cache));
  options.per_session = arguments.cache == "per-session";
  apply_idle(arguments.idle, options);
  if (options.workload.empty() && !options.traces.empty()) {
    const std::string name = std::filesystem::path(options.traces[0]).filename().string();
    options.workload = name.starts_with("generated:") ? name.substr(10) : name.substr(0, name.find('.'));
  }
  options.watch = watch_progress("misses", ProgressUnit::steps, arguments.quiet);

  Envelope envelope;
  ProvenanceInput provenance_input;
  provenance_input.program = "slacktier-harness misses";
  provenance_input.argv = invocation.argv;
  provenance_input.seed = options.seed;
  provenance_input.start_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  const MissesRun result = measure_misses(options);
  const TableSpec spec = load_table_spec(options.table);
  provenance_input.facts["host"] = host_json(read_host_facts());
  envelope.provenance = provenance(provenance_input);
  envelope.settings = {{"model", nullptr},
                       {"table", spec.name},
                       {"table_fingerprint", spec.fingerprint()},
                       {"ranks", options.ranks},
                       {"shard_map", to_string(options.shard_map)},
                       {"labels", {result.description}},
                       {"traces", Json::array()},
                       {"page_bytes", options.page_bytes},
                       {"rows_per_page", make_page_geometry(options.page_bytes, spec.row_bytes).rows_per_page},
                       {"sessions_started", result.sessions},
                       {"tokens", result.tokens},
                       {"lookups", result.lookups}};
  for (const std::string& trace : options.traces) envelope.settings["traces"].push_back({{"file", trace}});
  envelope.warnings = result.warnings;
  set_misses_results(envelope, result.results);
  if (arguments.redact) redact(envelope);
  if (!arguments.out.empty()) write_envelope(arguments.out, envelope);
  for (Table& table : misses_tables(envelope)) {
    table.head.insert(table.head.begin(), fmt::format("{}, {} ranks, {} shards; {}", spec.name, options.ranks,
                                                      to_string(options.shard_map), result.description));
    fmt::print("{}\n", render(table, format));
  }
  if (!arguments.plot.empty()) {
    write_text_file(arguments.plot, render_svg(misses_plot(envelope)));
    fmt::print(stderr, "plot: {}\n", arguments.plot);
  }
  return 0;
}

}  // namespace

void add_misses_command(CLI::App& app, const Invocation& invocation, std::function<int()>& chosen) {
  auto arguments = std::make_shared<MissesArguments>();
  CLI::App* command = app.add_subcommand(
      "misses", "Hit rates and pages per step against cache capacity, per layer and rank, from token sessions");
  MissesArguments& a = *arguments;
  MissesOptions& o = a.options;
  o.threads = static_cast<unsigned>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  command->add_option("--trace", o.traces,
                      "Token sessions (JSONL, plain, gzip or zstd); repeatable. Or generated:agent, generated:chat");
  command->add_option("--table", o.table, "Table: a built-in name or a JSON file")->capture_default_str();
  command->add_option("--token-map", o.token_map, "Token map of the table (little-endian int32 per raw id)");
  command->add_option("--workload", o.workload, "Name in the file; default: the first trace's");
  command->add_option("--layers", o.layers, "Layers, comma-separated; default: all")->delimiter(',');
  command->add_option("--ranks", o.ranks, "Tensor-parallel ranks R")->check(CLI::Range(1, 1024))->capture_default_str();
  command->add_option("--rank", o.on_ranks, "Only these ranks, comma-separated")->delimiter(',');
  command->add_option("--shard-map", a.shard_map, "contiguous or striped")->capture_default_str();
  command->add_option("--page-bytes", o.page_bytes, "Bytes of a page")->capture_default_str();
  command->add_option("--sessions", o.sessions, "Concurrent sessions B")->capture_default_str();
  command->add_option("--tokens-per-session", o.q, "Tokens per session and step q")->capture_default_str();
  command
      ->add_option("--policy", a.policies,
                   "Cache policies, comma-separated; lru gives every capacity in one pass (--list shows all)")
      ->delimiter(',');
  command->add_flag("--list", a.list, "List the cache policies");
  command->add_option("--capacity", o.capacities, "Cache rows per rank and layer, comma-separated")
      ->delimiter(',')
      ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::uint64_t>{{"k", 1000}, {"M", 1'000'000}}));
  command->add_option("--phase", o.phase, "What is counted: decode, prefill or all")->capture_default_str();
  command->add_option("--steps", o.steps, "Steps, warm-up included; default: as many as the sessions last");
  command->add_option("--warm-steps", o.warm_steps, "Steps before anything is counted")->capture_default_str();
  command->add_option("--prefill-chunk", o.chunk_tokens,
                      "Tokens of a prefill chunk; default 8192, with --phase decode those of a step");
  command->add_option("--cache", a.cache, "shared, or per-session: capacity / sessions for each (lru)")
      ->capture_default_str();
  command->add_option("--idle", a.idle, "Steps that a session pauses between turns, LEAST:MOST");
  command->add_option("--sample", o.sample, "Share of the rows to follow (SHARDS), such as 0.01")->capture_default_str();
  command->add_option("--train", o.train, "Sessions whose hottest rows static caches hold; default: the warm-up's");
  command->add_option("--threads", o.threads, "Threads")->check(CLI::Range(1, 4096))->capture_default_str();
  command->add_option("--memory", o.memory_bytes, "Most memory for recorded rows (policies other than lru)")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  command->add_option("--seed", o.seed, "Seed of generated sessions and of pauses")->capture_default_str();
  command->add_option("-o,--out", a.out, "Misses file to write");
  command->add_option("--plot", a.plot, "Write the curves as a figure (SVG)");
  command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  command->add_flag("--redact", a.redact, "Hash host names and paths in the file");
  command->add_flag("-q,--quiet", a.quiet, "No progress");
  command->callback(
      [arguments, &invocation, &chosen] { chosen = [arguments, &invocation] { return run(*arguments, invocation); }; });
}

}  // namespace slacktier
