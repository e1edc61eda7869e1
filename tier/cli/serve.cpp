// slacktier-tier serve and metrics: a table in this machine's memory for other nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "platforms/error.hpp"
#include "platforms/executor.hpp"
#include "platforms/numa.hpp"
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
  std::vector<std::string> disks, listen, rdma;
  std::string table, rows, shard_map = "contiguous", size, page_size = "4096", key_file;
  StageOptions options;
  double idle_seconds = 60;
  std::uint32_t most_clients = 1024;
  int gid_index = -1, numa_node = -1;
  bool quiet = false;
};

// One address, with the adapter and the shards behind it.
struct Served {
  std::string device;
  ServedPart part;
  std::unique_ptr<ServedTable> table;
  std::unique_ptr<TableServer> server;
};

// Who serves what, before anything is laid out.
std::vector<Served> deal(ServeSettings& settings, const std::vector<ImageSegment>& segments) {
  const std::size_t n = settings.listen.size();
  if (!settings.rdma.empty() && settings.rdma.size() != n)
    throw UsageError(
        fmt::format("--rdma names {} device(s), --listen {} address(es): each adapter serves its shards at an address of "
                    "its own, such as --rdma mlx5_0,mlx5_1 --listen 10.0.0.1:7430,10.0.1.1:7430",
                    settings.rdma.size(), n));
  std::vector<Served> all(n);
  const std::vector<ServedPart> parts = deal_parts(segments, n);
  for (std::size_t i = 0; i < n; ++i) {
    all[i].part = parts[i];
    if (!settings.rdma.empty()) all[i].device = find_rdma_device(settings.rdma[i]);
    all[i].part.numa_node = settings.numa_node >= 0 ? settings.numa_node
                            : all[i].device.empty() ? -1
                                                    : rdma_device_node(all[i].device).value_or(-1);
  }
  return all;
}

void lay_out(ServeSettings& settings, std::vector<Served>& all) {
  StageOptions& options = settings.options;
  if (!settings.disks.empty()) {
    if (!settings.table.empty() || !settings.rows.empty() || !settings.size.empty())
      throw UsageError("--disk serves a staged image as it is: leave out --table, --rows and --size");
    ServedPart chosen;
    chosen.layers = options.layers;
    chosen.ranks = options.only_ranks;
    all = deal(settings, served_segments(read_image_header(settings.disks), chosen));
    for (Served& served : all) {
      if (served.part.layers.empty()) served.part.layers = chosen.layers;
      if (served.part.ranks.empty()) served.part.ranks = chosen.ranks;
      served.table = std::make_unique<ServedTable>(
          ServedTable::load(settings.disks, served.part, watch_progress("laying out", ProgressUnit::bytes, settings.quiet)));
    }
    return;
  }
  if (settings.table.empty()) throw UsageError("say what to serve: a staged image with --disk, or a table with --table");
  options.shard_map = parse_shard_map(settings.shard_map);
  options.page_bytes = page_bytes_option(settings.page_size);
  if (!settings.size.empty()) options.max_bytes = parse_bytes("--size", settings.size);
  const TableSpec spec = load_table_spec(settings.table);
  if (!settings.rows.empty()) options.rows = checkpoint_table(spec, settings.rows);
  StageOptions planned = options;
  planned.disks = {"memory"};
  all = deal(settings, plan_image(spec, planned).segments);
  for (Served& served : all)
    served.table = std::make_unique<ServedTable>(
        ServedTable::make(spec, options, served.part, watch_progress("laying out", ProgressUnit::bytes, settings.quiet)));
}

void print_what_is_served(const std::vector<Served>& all) {
  for (const Served& served : all) {
    const ImageHeader& header = served.table->header();
    std::vector<std::string> shards;
    for (const ImageSegment& s : header.segments) shards.push_back(fmt::format("layer {} rank {}", s.layer, s.rank));
    const std::string place = served.table->describe_place(), remote_reads = served.server->describe_rdma();
    fmt::print("serving {} ({}, {} of {} ranks, {}): {} in memory{}\n{}listening on {}\n", header.table, header.origin,
               fmt::join(shards, ", "), header.ranks, to_string(header.shard_map), bytes_text(served.table->bytes()),
               place.empty() ? "" : ", " + place,
               remote_reads.empty() ? "" : fmt::format("remote reads through {}\n", remote_reads), served.server->address());
  }
  std::fflush(stdout);
}

// Until interrupted, each on a thread; one that fails ends the others.
void run(std::vector<Served>& all) {
  std::atomic<bool> stop{false};
  const auto run_one = [&](TableServer& server) {
    try {
      server.run([&] { return stop.load() || interrupted(); });
    } catch (...) {
      stop = true;
      throw;
    }
  };
  std::vector<std::unique_ptr<Task>> others;
  for (std::size_t i = 1; i < all.size(); ++i)
    others.push_back(thread_executor().start(fmt::format("serve-{}", i), [&, i] { run_one(*all[i].server); }));
  run_one(*all.front().server);
  for (const auto& other : others) other->join();
}

int serve(ServeSettings& settings) {
  ServerOptions options;
  options.key = load_key(settings.key_file);
  options.idle_timeout = static_cast<Nanos>(settings.idle_seconds * 1e9);
  options.most_clients = settings.most_clients;
  options.gid_index = settings.gid_index;
  std::vector<Served> all;
  lay_out(settings, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    options.listen = settings.listen[i];
    options.rdma_device = all[i].device;
    if (!options.rdma_device.empty())
      options.registering = watch_progress("registering", ProgressUnit::bytes, settings.quiet);
    if (!settings.quiet)
      options.log = [of = all.size() > 1 ? settings.listen[i] + ": " : ""](const std::string& line) {
        fmt::print(stderr, "{}{}\n", of, line);
      };
    all[i].server = std::make_unique<TableServer>(*all[i].table, options);
  }
  print_what_is_served(all);
  run(all);
  std::uint64_t pages = 0, bytes = 0, accepted = 0;
  for (const Served& served : all) {
    const ServerMetrics metrics = served.server->metrics();
    pages += metrics.pages;
    bytes += metrics.bytes;
    accepted += metrics.accepted;
  }
  fmt::print("served {} pages, {}, to {} connections\n", pages, bytes_text(bytes), accepted);
  return ExitCode::done;
}

}  // namespace

Command add_serve(CLI::App& app) {
  const auto settings = std::make_shared<ServeSettings>();
  StageOptions& options = settings->options;
  app.description("Lays a table out in memory and serves it to other nodes until SIGINT or SIGTERM.");
  app.add_option(
         "--listen", settings->listen,
         "Address of this machine to listen on, such as 10.0.0.1:7430; port 0: any free one, which is printed. Several: "
         "each serves some of the shards, whole ranks or layers, dealt in turn")
      ->required()
      ->delimiter(',')
      ->type_name("HOST:PORT,...");
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
                 "Offer one-sided reads through this RDMA device; auto: the first with an active port. One for each address")
      ->delimiter(',')
      ->type_name("DEVICE,...");
  app.add_option("--gid-index", settings->gid_index, "GID of that device; default: the best by score")
      ->check(CLI::Range(0, 1023));
  app.add_option("--numa-node", settings->numa_node, "Whose memory to take; default: the RDMA device's, without one any")
      ->check(CLI::Range(0, 1023))
      ->type_name("NODE");
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
