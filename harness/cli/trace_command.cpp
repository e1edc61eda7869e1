// slacktier-harness trace: token sessions from conversations, what they hold, and made-up ones.
#include <fmt/format.h>

#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "harness/anonymise.hpp"
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
  std::string out, tokenizer, input = "auto", chat_template = "auto", kind = "agent", format = "table";
  AnonymiseOptions of_anonymous;
  std::uint64_t limit = 0, sessions = 100, seed = 1;
  bool strict = false, anonymise = false;
};

int anonymise(const TraceArguments& arguments, const std::vector<std::string>& files) {
  AnonymiseOptions options = arguments.of_anonymous;
  options.traces = files;
  options.out = arguments.out;
  options.watch = [] { throw_if_interrupted(); };
  const Anonymised done = anonymise_sessions(options);
  fmt::print("{}: {} sessions, {} tokens, {} contexts; no text, ids or names\n", arguments.out, done.sessions, done.tokens,
             done.contexts);
  fmt::print("  use it with --trace {} --table {}, which reads {}\n", arguments.out, done.table_file, done.rows_file);
  return 0;
}

// A file that is gone when this is.
struct Passing {
  std::string path;
  ~Passing() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

int import_files(const TraceArguments& arguments) {
  if (arguments.anonymise) check_anonymised_table(arguments.of_anonymous);
  const Passing tokens{arguments.anonymise ? arguments.out + ".tokens" : ""};
  const std::string out = arguments.anonymise ? tokens.path : arguments.out;
  const Json done = call_python("slacktier.traces", "import_traces",
                                {{"files", arguments.files},
                                 {"out", out},
                                 {"tokenizer", arguments.tokenizer},
                                 {"form", arguments.input},
                                 {"chat_template", arguments.chat_template},
                                 {"strict", arguments.strict},
                                 {"limit", arguments.limit}});
  fmt::print("{}: {} sessions, {} tokens\n", arguments.out, done.at("sessions").get<std::uint64_t>(),
             done.at("tokens").get<std::uint64_t>());
  if (const auto name = done.at("chat_template").get<std::string>(); !name.empty())
    fmt::print("  turns as the chat template of {} writes them\n", name);
  for (const auto& [name, count] : done.at("formats").items())
    fmt::print("  {} records as {}\n", count.get<std::uint64_t>(), name);
  if (const auto bad = done.at("bad_records").get<std::uint64_t>(); bad > 0) {
    fmt::print("  {} records left out:\n", bad);
    for (const auto& one : done.at("bad")) fmt::print("    {}\n", one.get<std::string>());
  }
  return arguments.anonymise ? anonymise(arguments, {tokens.path}) : 0;
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
  import_command
      ->add_option(
          "--chat-template", a.chat_template,
          "auto: the tokenizer's own (tokenizer_config.json or chat_template.jinja beside it), none, or a Jinja file")
      ->capture_default_str();
  const auto of_anonymous = [&a](CLI::App* to) {
    to->add_option("--table", a.of_anonymous.table, "Table whose rows are kept: a built-in name or a JSON file")
        ->capture_default_str();
    to->add_option("--token-map", a.of_anonymous.token_map, "Token map of the table (little-endian int32 per raw id)");
  };
  import_command->add_flag("--anonymise", a.anonymise,
                           "Keep row indices alone, as trace anonymise does; takes --table and --token-map");
  of_anonymous(import_command);
  import_command->add_option("--limit", a.limit, "Stop after so many sessions; 0: all");
  import_command->add_flag("--strict", a.strict, "A record that is no conversation is an error, not left out");
  import_command->add_option("-o,--out", a.out, "Sessions to write (.gz: compressed)")->required();
  import_command->callback([arguments, &chosen] { chosen = [arguments] { return import_files(*arguments); }; });
  CLI::App* anonymise_command = command->add_subcommand(
      "anonymise",
      "Token sessions to row indices: a trace whose caches hit as before, without text, ids or names. What stays: lengths "
      "and roles of "
      "turns, and which contexts recur how often. Someone who has the texts can find them by that pattern");
  anonymise_command->add_option("file", a.files, "Token sessions (JSONL, plain, gzip or zstd)")->required();
  of_anonymous(anonymise_command);
  anonymise_command->add_option("-o,--out", a.out, "Sessions to write; OUT.table.json and OUT.rows beside them")->required();
  anonymise_command->callback(
      [arguments, &chosen] { chosen = [arguments] { return anonymise(*arguments, arguments->files); }; });
  CLI::App* stats_command = command->add_subcommand("stats", "Sessions, turns and tokens by role");
  stats_command->add_option("file", a.files, "Token sessions (JSONL, plain, gzip or zstd)")->required();
  stats_command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  stats_command->callback([arguments, &chosen] { chosen = [arguments] { return stats(*arguments); }; });
  CLI::App* generate_command = command->add_subcommand("generate", "Sessions that a cache cannot tell from real ones");
  generate_command
      ->add_option("kind", a.kind,
                   fmt::format("One of {}: after real sessions, or with the hit rates of the paper's own traffic",
                               fmt::join(generated_kinds(), ", ")))
      ->capture_default_str();
  generate_command->add_option("--sessions", a.sessions, "How many")->check(CLI::Range(1, 1'000'000))->capture_default_str();
  generate_command->add_option("--seed", a.seed, "Seed")->capture_default_str();
  generate_command->add_option("-o,--out", a.out, "Sessions to write")->required();
  generate_command->callback([arguments, &chosen] { chosen = [arguments] { return generate(*arguments); }; });
}

}  // namespace slacktier
