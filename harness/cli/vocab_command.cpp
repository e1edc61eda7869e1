// slacktier-harness vocab: the token map of a table that compresses its vocabulary, from the tokenizer.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "harness/cli/commands.hpp"
#include "harness/vocab.hpp"
#include "platforms/program.hpp"
#include "reports/json.hpp"
#include "reports/sha256.hpp"

namespace slacktier {
namespace {

struct VocabArguments {
  VocabularyOptions options;
  std::string out;
};

int run(const VocabArguments& arguments) {
  const Vocabulary vocabulary = compress_vocabulary(arguments.options);
  std::string bytes;
  bytes.reserve(4 * vocabulary.map.size());
  for (const std::int32_t id : vocabulary.map)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(static_cast<std::uint32_t>(id) >> shift & 0xFF);
  fmt::print("{} ids, {} classes{}\nSHA-256 of the map: {}\n", vocabulary.map.size(), vocabulary.classes,
             vocabulary.missing > 0 ? fmt::format(" ({} ids without a token, each its own)", vocabulary.missing) : "",
             sha256_hex(bytes));
  if (!arguments.out.empty()) write_text_file(arguments.out, bytes);
  return 0;
}

}  // namespace

void add_vocab_command(CLI::App& app, std::function<int()>& chosen) {
  auto arguments = std::make_shared<VocabArguments>();
  CLI::App* command =
      app.add_subcommand("vocab", "Write the token map of Engram's compressed vocabulary from a tokenizer.json");
  VocabArguments& a = *arguments;
  command->add_option("tokenizer", a.options.tokenizer, "tokenizer.json (plain, gzip or zstd)")->required();
  command->add_option("--base", a.options.base, "Compress only ids below it; default: all");
  command->add_option("--added-distinct", a.options.added_distinct, "Ids from --base on that are classes of their own")
      ->check(CLI::Range(0, 10'000'000));
  command->add_option("-o,--out", a.out, "Map to write: a little-endian int32 per id, as --token-map takes it");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace slacktier
