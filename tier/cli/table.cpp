// slacktier-tier table: specs from models' configs, what a spec amounts to, and the rows of tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/quantity.hpp"
#include "tier/cli/commands.hpp"
#include "tier/image.hpp"

namespace slacktier::cli {

namespace {

struct TableSettings {
  std::string input, output, name, hash, shard_map = "contiguous", page_size = "4096";
  std::uint32_t ranks = 1;
  bool force = false, json = false;
};

int from_config(const TableSettings& settings) {
  const DerivedSpec derived = table_spec_from_config(settings.input, settings.name, settings.hash);
  for (const std::string& note : derived.notes) fmt::print(stderr, "note: {}\n", note);
  if (settings.output.empty()) {
    fmt::print("{}", derived.text);
    return ExitCode::done;
  }
  if (!settings.force && std::filesystem::exists(settings.output))
    throw UsageError(settings.output + ": is there already; name another file, or overwrite it with --force");
  std::ofstream file(settings.output, std::ios::binary | std::ios::trunc);
  if (!file) throw UsageError(settings.output + ": cannot be written");
  file << derived.text;
  file.close();
  if (!file) throw DeviceError(settings.output + ": could not be written in full");
  return ExitCode::done;
}

nlohmann::json rank_json(const TableSpec& spec, std::size_t layer, const TableSettings& settings, std::uint32_t rank,
                         const PageGeometry& geometry) {
  const Shard shard = make_shard(spec, layer, parse_shard_map(settings.shard_map), settings.ranks, rank);
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < shard.first.size(); ++c)
    if (shard.first[c] < shard.last[c]) columns.push_back(c);
  const std::uint64_t pages = geometry.pages(shard.rows);
  return {{"rank", rank},
          {"rows", shard.rows},
          {"row_bytes", shard.rows * spec.row_bytes},
          {"pages", pages},
          {"page_bytes", pages * geometry.page_bytes},
          {"columns", columns}};
}

nlohmann::json show_json(const TableSpec& spec, const TableSettings& settings) {
  const PageGeometry geometry = make_page_geometry(page_bytes_option(settings.page_size), spec.row_bytes);
  nlohmann::json layers = nlohmann::json::array();
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    nlohmann::json ranks = nlohmann::json::array();
    for (std::uint32_t r = 0; r < settings.ranks; ++r) ranks.push_back(rank_json(spec, l, settings, r, geometry));
    layers.push_back({{"layer", spec.layers[l].layer}, {"rows", spec.layers[l].rows}, {"ranks", ranks}});
  }
  return {{"table", spec.name},
          {"fingerprint", spec.fingerprint()},
          {"hash", spec.hash},
          {"record", spec.format == RecordFormat::bf16 ? "bf16" : "fp8_e4m3_block32"},
          {"row_values", spec.row_values},
          {"row_bytes", spec.row_bytes},
          {"rows_per_page", geometry.rows_per_page},
          {"page_bytes", geometry.page_bytes},
          {"rows_per_token", spec.rows_per_token()},
          {"max_ngram", spec.max_ngram},
          {"vocabulary", spec.vocabulary},
          {"raw_vocabulary", spec.raw_vocabulary},
          {"ranks", settings.ranks},
          {"shard_map", settings.shard_map},
          {"tensors", {{"weight", spec.tensors.weight}, {"scale", spec.tensors.scale}}},
          {"layers", layers}};
}

int show(const TableSettings& settings) {
  const TableSpec spec = load_table_spec(settings.input);
  const nlohmann::json json = show_json(spec, settings);
  if (settings.json) {
    fmt::print("{}\n", json.dump(2));
    return ExitCode::done;
  }
  const PageGeometry geometry = make_page_geometry(page_bytes_option(settings.page_size), spec.row_bytes);
  fmt::print(
      "table        {} (fingerprint {})\n"
      "hash         {}: of up to {} token{}, {} row{} a token and layer, ids below {}{}\n"
      "record       {} values, {} bytes, {} to a page of {}\n"
      "shards       {} rank{}, {}\n",
      spec.name, spec.fingerprint(), spec.hash, spec.max_ngram, spec.max_ngram == 1 ? "" : "s", spec.rows_per_token(),
      spec.rows_per_token() == 1 ? "" : "s", spec.vocabulary,
      spec.vocabulary == spec.raw_vocabulary ? "" : fmt::format(" ({} before compression)", spec.raw_vocabulary),
      spec.row_values, spec.row_bytes, geometry.rows_per_page, geometry.page_bytes, settings.ranks,
      settings.ranks == 1 ? "" : "s", settings.shard_map);
  if (!spec.tensors.weight.empty()) fmt::print("checkpoint   {}\n", fmt::join(spec.tensors.weight, "\n          or "));
  fmt::print("\n{:>7} {:>6} {:>13} {:>13} {:>13} {:>13}  {}\n", "layer", "rank", "rows", "bytes", "pages", "on disk",
             "columns");
  std::uint64_t rows = 0, bytes = 0, pages = 0, disk = 0;
  for (const nlohmann::json& layer : json["layers"]) {
    for (const nlohmann::json& rank : layer["ranks"]) {
      const auto columns = rank["columns"].get<std::vector<std::size_t>>();
      fmt::print("{:>7} {:>6} {:>13} {:>13} {:>13} {:>13}  {}\n", layer["layer"].get<int>(),
                 rank["rank"].get<std::uint32_t>(), rank["rows"].get<std::uint64_t>(),
                 bytes_text(rank["row_bytes"].get<std::uint64_t>()), rank["pages"].get<std::uint64_t>(),
                 bytes_text(rank["page_bytes"].get<std::uint64_t>()),
                 columns.empty() ? "none"
                 : columns.size() > 1 && columns.back() - columns.front() + 1 == columns.size()
                     ? fmt::format("{}-{}", columns.front(), columns.back())
                     : fmt::format("{}", fmt::join(columns, ",")));
      rows += rank["rows"].get<std::uint64_t>();
      bytes += rank["row_bytes"].get<std::uint64_t>();
      pages += rank["pages"].get<std::uint64_t>();
      disk += rank["page_bytes"].get<std::uint64_t>();
    }
  }
  fmt::print("{:>7} {:>6} {:>13} {:>13} {:>13} {:>13}\n", "all", "all", rows, bytes_text(bytes), pages, bytes_text(disk));
  return ExitCode::done;
}

}  // namespace

Command add_table(CLI::App& app) {
  const auto settings = std::make_shared<TableSettings>();
  app.description("Table specs: writes one from a model's own config, shows what one amounts to, hashes tokens by one.");
  app.require_subcommand(1);

  CLI::App* const derive = app.add_subcommand("from-config", "Writes a table's JSON file from a model's config.json");
  derive->add_option("config", settings->input, "config.json of a Hugging Face model")->required()->type_name("FILE");
  derive->add_option("-o,--out", settings->output, "File to write; default standard output")->type_name("FILE.json");
  derive->add_option("--name", settings->name, "Name of the table; default the model's type")->type_name("NAME");
  derive->add_option("--hash", settings->hash, "Hash family, where a model has tables of several")->type_name("FAMILY");
  derive->add_flag("--force", settings->force, "Overwrite the file");

  CLI::App* const shown = app.add_subcommand("show", "Prints a table's layers, rows, bytes and pages, per rank");
  shown->add_option("table", settings->input, "Built-in table or a JSON file")->required()->type_name("NAME|FILE.json");
  shown->add_option("--ranks", settings->ranks, "Number of tensor-parallel ranks that share the table; default 1")
      ->check(CLI::Range(1, 4096))
      ->type_name("R");
  shown->add_option("--shard-map", settings->shard_map, "How ranks share the rows: contiguous (default) or striped")
      ->type_name("MAP");
  shown->add_option("--page-size", settings->page_size, "Bytes of a page, 512 to 64KiB; default 4096")->type_name("BYTES");
  add_format(*shown, settings->json);
  CLI::App* const rows = app.add_subcommand("rows", "Writes the row indices that a sequence of tokens asks for");
  const Command write_rows = add_table_rows(*rows);
  return [settings, derive, rows, write_rows] {
    if (rows->parsed()) return write_rows();
    return derive->parsed() ? from_config(*settings) : show(*settings);
  };
}

}  // namespace slacktier::cli
