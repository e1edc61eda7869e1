// slacktier-harness seen-set: which rows traces ask for, as a file that placements skip the other rows by.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/seen_set_build.hpp"
#include "platforms/program.hpp"

namespace slacktier {
namespace {

struct SeenSetArguments {
  SeenSetOptions options;
  std::string shard_map = "contiguous", file;
};

void print(const std::string& path, const SeenSetHeader& header) {
  fmt::print("{}: rows of {} ({}) seen in {} tokens of {} sessions\n", path, header.table, header.fingerprint, header.tokens,
             header.sessions);
  fmt::print("from {}\n", header.origin);
  for (const SeenShard& shard : header.shards)
    fmt::print("layer {:>3}, rank {} of {} ({}): {} of {} rows seen ({:.3f}%), {} bytes\n", shard.layer, shard.rank,
               header.ranks, to_string(header.shard_map), shard.seen, shard.rows,
               shard.rows > 0 ? 100.0 * static_cast<double>(shard.seen) / static_cast<double>(shard.rows) : 0.0,
               shard.bytes);
}

int build(const SeenSetArguments& arguments) {
  SeenSetOptions options = arguments.options;
  options.shard_map = parse_shard_map(arguments.shard_map);
  options.between_waves = [] { throw_if_interrupted(); };
  print(options.out, build_seen_set(options));
  return 0;
}

}  // namespace

void add_seen_set_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<SeenSetArguments>();
  CLI::App* command = app.add_subcommand("seen-set", "Which rows of a table traces ask for: build a seen-set, or show one");
  command->require_subcommand(1);
  SeenSetArguments& a = *arguments;
  CLI::App* make = command->add_subcommand("build", "Hash every token of the traces and write the set of their rows");
  make->add_option("--table", a.options.table, "Table: a built-in name or a JSON file")->capture_default_str();
  make->add_option("--trace", a.options.traces, "Token sessions (JSONL, plain, gzip or zstd); repeatable")->required();
  make->add_option("--token-map", a.options.token_map, "Token map of the table (little-endian int32 per raw id)");
  make->add_option("--ranks", a.options.ranks, "Tensor-parallel ranks R")->check(CLI::Range(1, 1024))->capture_default_str();
  make->add_option("--shard-map", a.shard_map, "contiguous or striped")->capture_default_str();
  make->add_option("-o,--out", a.options.out, "File to write, as a whole or not at all")->required();
  make->callback([arguments, &chosen] { chosen = [arguments] { return build(*arguments); }; });
  CLI::App* show = command->add_subcommand("show", "Print what a seen-set holds");
  show->add_option("file", a.file, "Seen-set file")->required();
  show->callback([arguments, &chosen] {
    chosen = [arguments] {
      print(arguments->file, read_seen_set_header(arguments->file));
      return 0;
    };
  });
}

}  // namespace slacktier
