// slacktier-harness trace: token sessions from conversations, what they hold, and made-up ones.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/generator.hpp"
#include "harness/trace_stats.hpp"
#include "platforms/program.hpp"
#include "python/embedded.hpp"
#include "reports/json.hpp"
#include "reports/table.hpp"

namespace slacktier {
namespace {

struct TraceArguments {
  std::vector<std::string> files;
  std::string out, tokenizer, input = "auto", kind = "agent", format = "table";
  std::uint64_t limit = 0, sessions = 100, seed = 1;
  bool strict = false;
};

int import_files(const TraceArguments& arguments) {
  const Json done = call_python("slacktier.traces", "import_traces",
                                {{"files", arguments.files},
                                 {"out", arguments.out},
                                 {"tokenizer", arguments.tokenizer},
                                 {"form", arguments.input},
                                 {"strict", arguments.strict},
                                 {"limit", arguments.limit}});
  fmt::print("{}: {} sessions, {} tokens\n", arguments.out, done.at("sessions").get<std::uint64_t>(),
             done.at("tokens").get<std::uint64_t>());
  for (const auto& [name, count] : done.at("formats").items())
    fmt::print("  {} records as {}\n", count.get<std::uint64_t>(), name);
  if (const auto bad = done.at("bad_records").get<std::uint64_t>(); bad > 0) {
    fmt::print("  {} records left out:\n", bad);
    for (const auto& one : done.at("bad")) fmt::print("    {}\n", one.get<std::string>());
  }
  return 0;
}

int generate(const TraceArguments& arguments) {
  const auto source = generated_sessions(arguments.kind, arguments.seed);
  std::string text;
  Session session;
  for (std::uint64_t s = 0; s < arguments.sessions && source->next(session); ++s) {
    throw_if_interrupted();
    Json json = {{"id", session.id}, {"group", session.group}, {"turns", Json::array()}};
    for (const Turn& turn : session.turns) json["turns"].push_back({{"role", to_string(turn.role)}, {"ids", turn.ids}});
    text += json.dump() + "\n";
  }
  write_text_file(arguments.out, text);
  fmt::print("{}: {} generated {} sessions, seed {}\n", arguments.out, arguments.sessions, arguments.kind, arguments.seed);
  return 0;
}

int stats(const TraceArguments& arguments) {
  const TableFormat format = parse_table_format(arguments.format);
  fmt::print("{}\n", render(trace_stats(arguments.files, [] { throw_if_interrupted(); }), format));
  return 0;
}

}  // namespace

void add_trace_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<TraceArguments>();
  TraceArguments& a = *arguments;
  CLI::App* command =
      app.add_subcommand("trace", "Token sessions: import conversations, count what a file holds, make some up");
  command->require_subcommand(1);
  CLI::App* import_command = command->add_subcommand(
      "import", "Conversations to token sessions: OpenAI messages, ShareGPT, WildChat, OpenHands, SWE-agent, server logs");
  import_command->add_option("file", a.files, "JSON Lines (plain, .gz, .zst), .json, .traj or .parquet")
      ->required()
      ->check(CLI::ExistingFile);
  import_command->add_option("--tokenizer", a.tokenizer, "tokenizer.json, or the model's folder; bytes: one id a byte")
      ->required();
  import_command
      ->add_option("--input-format", a.input, "auto, turns, openai, sharegpt, wildchat, trajectory, history or log")
      ->capture_default_str();
  import_command->add_option("--limit", a.limit, "Stop after so many sessions; 0: all");
  import_command->add_flag("--strict", a.strict, "A record that is no conversation is an error, not left out");
  import_command->add_option("-o,--out", a.out, "Sessions to write (.gz: compressed)")->required();
  import_command->callback([arguments, &chosen] { chosen = [arguments] { return import_files(*arguments); }; });
  CLI::App* stats_command = command->add_subcommand("stats", "Sessions, turns and tokens by role");
  stats_command->add_option("file", a.files, "Token sessions (JSONL, plain, gzip or zstd)")->required();
  stats_command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  stats_command->callback([arguments, &chosen] { chosen = [arguments] { return stats(*arguments); }; });
  CLI::App* generate_command = command->add_subcommand("generate", "Sessions that a cache cannot tell from real ones");
  generate_command->add_option("kind", a.kind, "agent or chat")->capture_default_str();
  generate_command->add_option("--sessions", a.sessions, "How many")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  generate_command->add_option("--seed", a.seed, "Seed")->capture_default_str();
  generate_command->add_option("-o,--out", a.out, "Sessions to write")->required();
  generate_command->callback([arguments, &chosen] { chosen = [arguments] { return generate(*arguments); }; });
}

}  // namespace slacktier
