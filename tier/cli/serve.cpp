// slacktier-tier serve and metrics: a table in this machine's memory for other nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "platforms/program.hpp"
#include "platforms/progress.hpp"
#include "platforms/quantity.hpp"
#include "tier/cli/commands.hpp"
#include "tier/cli/describe.hpp"
#include "tier/remote_image.hpp"
#include "tier/server.hpp"

namespace slacktier::cli {
namespace {

struct ServeSettings {
  std::vector<std::string> disks;
  std::string table, rows, shard_map = "contiguous", size, page_size = "4096", listen, key_file;
  StageOptions options;
  double idle_seconds = 60;
  std::uint32_t most_clients = 1024;
  std::string rdma;
  int gid_index = -1;
  bool quiet = false;
};

ServedTable lay_out(ServeSettings& settings) {
  const auto progress = watch_progress("laying out", ProgressUnit::bytes, settings.quiet);
  if (!settings.disks.empty()) {
    if (!settings.table.empty() || !settings.rows.empty() || !settings.size.empty())
      throw UsageError("--disk serves a staged image as it is: leave out --table, --rows and --size");
    return ServedTable::load(settings.disks, settings.options.layers, settings.options.only_ranks, progress);
  }
  if (settings.table.empty()) throw UsageError("say what to serve: a staged image with --disk, or a table with --table");
  settings.options.shard_map = parse_shard_map(settings.shard_map);
  settings.options.page_bytes = page_bytes_option(settings.page_size);
  if (!settings.size.empty()) settings.options.max_bytes = parse_bytes("--size", settings.size);
  const TableSpec spec = load_table_spec(settings.table);
  if (!settings.rows.empty()) settings.options.rows = checkpoint_table(spec, settings.rows);
  return ServedTable::make(spec, settings.options, progress);
}

int serve(ServeSettings& settings) {
  ServerOptions options;
  options.listen = settings.listen;
  options.key = load_key(settings.key_file);
  options.idle_timeout = static_cast<Nanos>(settings.idle_seconds * 1e9);
  options.most_clients = settings.most_clients;
  if (!settings.quiet) options.log = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  const ServedTable table = lay_out(settings);
  options.rdma_device = settings.rdma;
  options.gid_index = settings.gid_index;
  if (!settings.rdma.empty()) options.registering = watch_progress("registering", ProgressUnit::bytes, settings.quiet);
  TableServer server(table, options);
  const ImageHeader& header = table.header();
  std::vector<std::string> shards;
  for (const ImageSegment& s : header.segments) shards.push_back(fmt::format("layer {} rank {}", s.layer, s.rank));
  const std::string remote_reads =
      server.describe_rdma().empty() ? "" : fmt::format("remote reads through {}\n", server.describe_rdma());
  fmt::print("serving {} ({}, {} of {} ranks, {}): {} in memory\n{}listening on {}\n", header.table, header.origin,
             fmt::join(shards, ", "), header.ranks, to_string(header.shard_map), bytes_text(table.bytes()), remote_reads,
             server.address());
  std::fflush(stdout);
  server.run([] { return interrupted(); });
  const ServerMetrics metrics = server.metrics();
  fmt::print("served {} pages, {}, to {} connections\n", metrics.pages, bytes_text(metrics.bytes), metrics.accepted);
  return ExitCode::done;
}

}  // namespace

Command add_serve(CLI::App& app) {
  const auto settings = std::make_shared<ServeSettings>();
  StageOptions& options = settings->options;
  app.description("Lays a table out in memory and serves it to other nodes until SIGINT or SIGTERM.");
  app.add_option("--listen", settings->listen,
                 "Address of this machine to listen on, such as 10.0.0.1:7430; port 0: any free one, which is printed")
      ->required()
      ->type_name("HOST:PORT");
  app.add_option("--key-file", settings->key_file, "Key that readers must hold: openssl rand -hex 32")
      ->required()
      ->type_name("FILE");
  app.add_option("--disk", settings->disks, "Disk of a staged image to serve, in any order. Repeatable")
      ->allow_extra_args(false)
      ->type_name("FILE|DEVICE");
  app.add_option("--table", settings->table, "Table to make in memory instead, from generated rows or --rows")
      ->type_name("NAME|FILE.json");
  app.add_option("--rows", settings->rows, "Safetensors checkpoint with the rows (folder or file); default generated rows")
      ->type_name("DIR|FILE");
  app.add_option("--layers", options.layers, "Layers to serve, such as 1,14; default all")->delimiter(',')->type_name("IDS");
  app.add_option("--ranks", options.ranks, "Number of tensor-parallel ranks that share the table; default 1")
      ->type_name("R");
  app.add_option("--rank", options.only_ranks, "Ranks to serve, from 0, such as 0,3; default all")
      ->delimiter(',')
      ->type_name("IDS");
  app.add_option("--shard-map", settings->shard_map, "How ranks share the rows: contiguous (default) or striped")
      ->type_name("MAP");
  app.add_option("--size", settings->size, "Scale to at most this size (1GiB); default full size")->type_name("BYTES");
  app.add_option("--page-size", settings->page_size, "Bytes of a page, 512 to 64KiB; default 4096")->type_name("BYTES");
  app.add_option("--seed", options.seed, "Seed of the generated rows; default 1");
  app.add_option("--idle-seconds", settings->idle_seconds,
                 "Readers that are silent for so long are dropped; they ping every 10 s")
      ->check(CLI::Range(30.0, 86400.0))
      ->capture_default_str();
  app.add_option("--clients", settings->most_clients, "Connections at once; more are refused")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--rdma", settings->rdma,
                 "Offer one-sided reads through this RDMA device; auto: the first with an active port")
      ->type_name("DEVICE");
  app.add_option("--gid-index", settings->gid_index, "GID of that device; default: the best by score")
      ->check(CLI::Range(0, 1023));
  add_quiet(app, settings->quiet);
  return [settings] { return serve(*settings); };
}

Command add_metrics(CLI::App& app) {
  struct MetricsSettings {
    std::string connect, key_file;
  };
  const auto settings = std::make_shared<MetricsSettings>();
  app.description("Prints what a server has done, as JSON.");
  app.add_option("--connect", settings->connect, "Server to ask")->required()->type_name("HOST:PORT");
  app.add_option("--key-file", settings->key_file, "The server's key")->required()->type_name("FILE");
  return [settings] {
    fmt::print("{}\n", nlohmann::json::parse(read_server_metrics(settings->connect, settings->key_file)).dump(2));
    return ExitCode::done;
  };
}

}  // namespace slacktier::cli
