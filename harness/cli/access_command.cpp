// slacktier-harness access: what sessions ask of a table, question by question.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>

#include "harness/access.hpp"
#include "harness/cli/commands.hpp"
#include "platforms/program.hpp"
#include "reports/table.hpp"

namespace slacktier {
namespace {

struct AccessArguments {
  AccessOptions options;
  std::vector<std::string> questions;
  std::string format = "table";
  bool list = false;
};

int run(const AccessArguments& arguments) {
  if (arguments.list) {
    for (const AccessQuestion& question : access_questions()) fmt::print("{:<12} {}\n", question.name, question.asks);
    return 0;
  }
  const TableFormat format = parse_table_format(arguments.format);
  AccessOptions options = arguments.options;
  if (options.workload.empty() && !options.traces.empty()) {
    const std::string name = std::filesystem::path(options.traces[0]).filename().string();
    options.workload = name.substr(0, name.find('.'));
  }
  options.watch = [] { throw_if_interrupted(); };
  for (const Table& table : answer_access(options, arguments.questions)) fmt::print("{}\n", render(table, format));
  return 0;
}

}  // namespace

void add_access_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<AccessArguments>();
  CLI::App* command = app.add_subcommand(
      "access", "What sessions ask of a table: coverage, novelty, reuse; what warming, guessing and packing are worth");
  AccessArguments& a = *arguments;
  command->add_option("question", a.questions, "Questions (--list shows them); default: all");
  command->add_flag("--list", a.list, "List the questions");
  command->add_option("--trace", a.options.traces, "Token sessions (JSONL, plain, gzip or zstd); repeatable");
  command->add_option("--table", a.options.table, "Table: a built-in name or a JSON file")->capture_default_str();
  command->add_option("--token-map", a.options.token_map, "Token map of the table (little-endian int32 per raw id)");
  command->add_option("--workload", a.options.workload, "agent or chat: whose values of the paper stand beside ours");
  command->add_option("--layer", a.options.layer, "Layer; default: the last of the table");
  command->add_option("--sessions", a.options.sessions, "Concurrent sessions B")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--ranks", a.options.ranks, "Tensor-parallel ranks R")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--rows", a.options.rows,
                      "The table's safetensors: what its heads have in common (question redundancy)");
  command->add_option("--cache-rows", a.options.cache_rows, "Rows of the cache, all ranks together")->capture_default_str();
  command->add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace slacktier
