// slacktier-tier table rows: the rows that a sequence of tokens asks for.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "reports/npy.hpp"
#include "tier/cli/commands.hpp"
#include "tier/hash.hpp"
#include "tier/sequence_rows.hpp"

namespace slacktier::cli {
namespace {

struct RowsSettings {
  std::string table, tokens, token_map, device = "cpu", output;
  int layer = -1;
};

std::vector<std::uint32_t> hash_ids(const RowsSettings& settings, const TableSpec& spec) {
  const NpyArray file = read_npy(settings.tokens);
  const auto* ids = std::get_if<std::vector<std::int64_t>>(&file.values);
  if (ids == nullptr || file.shape.size() != 1)
    throw UsageError(settings.tokens + ": one dimension of int64 token ids is needed");
  if (settings.token_map.empty() && spec.vocabulary != spec.raw_vocabulary)
    throw UsageError(fmt::format("table {} hashes a compressed vocabulary: give its map with --token-map", spec.name));
  const TokenMap map = settings.token_map.empty() ? TokenMap() : TokenMap::load(settings.token_map, spec);
  std::vector<std::uint32_t> result;
  result.reserve(ids->size());
  for (std::size_t i = 0; i < ids->size(); ++i) {
    const std::int64_t id = (*ids)[i];
    if (id < 0 || id >= static_cast<std::int64_t>(spec.raw_vocabulary))
      throw UsageError(fmt::format("{}: token {} is {}; table {} has the ids 0 to {}", settings.tokens, i, id, spec.name,
                                   spec.raw_vocabulary - 1));
    result.push_back(map(static_cast<std::uint32_t>(id)));
  }
  return result;
}

int write_rows(const RowsSettings& settings) {
  const TableSpec spec = load_table_spec(settings.table);
  const std::size_t layer = settings.layer < 0 ? 0 : spec.layer_index(settings.layer);
  const std::vector<std::uint32_t> sequence = hash_ids(settings, spec);
  const auto device = open_device(settings.device);
  const std::vector<std::uint32_t> rows = sequence_rows(*device, spec, layer, sequence);
  NpyArray out;
  out.shape = {sequence.size(), spec.rows_per_token()};
  out.values = std::vector<std::int64_t>(rows.begin(), rows.end());
  const std::filesystem::path path(settings.output);
  const SampleFile file = write_npy(path.parent_path().empty() ? "." : path.parent_path(), path.filename().string(), out);
  fmt::print(stderr, "{}: {} tokens, {} rows each, layer {} of {}, hashed on {}; sha256 {}\n", settings.output,
             sequence.size(), spec.rows_per_token(), spec.layers[layer].layer, spec.name, device->facts().name, file.sha256);
  return ExitCode::done;
}

}  // namespace

Command add_table_rows(CLI::App& app) {
  const auto settings = std::make_shared<RowsSettings>();
  app.add_option("--table", settings->table, "Built-in table or a JSON file")->required()->type_name("NAME|FILE.json");
  app.add_option("--tokens", settings->tokens, "One sequence of raw token ids: NumPy file, int64, one dimension")
      ->required()
      ->type_name("FILE.npy");
  app.add_option("--token-map", settings->token_map, "Token map of tables that compress the vocabulary")->type_name("FILE");
  app.add_option("--layer", settings->layer, "Layer by model id; default the table's first")
      ->check(CLI::NonNegativeNumber)
      ->type_name("K");
  app.add_option("--device", settings->device, "Device that hashes: cpu (default), or cuda:0 where built")
      ->type_name("NAME");
  app.add_option("-o,--out", settings->output, "File for [tokens][rows of a token]: NumPy, int64")
      ->required()
      ->type_name("FILE.npy");
  return [settings] { return write_rows(*settings); };
}

}  // namespace slacktier::cli
