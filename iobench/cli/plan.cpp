// From the options to the images, pages and settings that they name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "iobench/cli/commands.hpp"
#include "iobench/table_pages.hpp"
#include "platforms/error.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/host.hpp"
#include "platforms/preflight.hpp"
#include "platforms/progress.hpp"
#include "platforms/provenance.hpp"
#include "platforms/quantity.hpp"
#include "tier/remote_image.hpp"

namespace slacktier::cli {
namespace {

namespace fs = std::filesystem;

void create_image(const ReadArguments& arguments, const TableSpec& spec, const std::vector<std::string>& disks,
                  std::uint32_t table_ranks) {
  StageOptions options;
  options.disks = disks;
  options.shard_map = parse_shard_map(arguments.shard_map);
  options.ranks = table_ranks;
  options.only_ranks = {table_ranks - 1};
  options.page_bytes = arguments.page_bytes;
  options.max_bytes = arguments.create;
  options.seed = arguments.seed;
  options.progress = watch_progress("staging " + disks.front(), ProgressUnit::bytes, arguments.quiet);
  for (const auto& disk : disks)
    if (fs::is_block_file(disk))
      throw UsageError(
          fmt::format("--create writes files only; {} is a device: stage it with slacktier-tier stage --disk {} "
                      "--serial SERIAL",
                      disk, disk));
  stage_image(spec, options);
}

// A table's lookups per rank belong to a number of ranks: that of the image, or the paper's four for an image of no table.
std::vector<LayerPages> asked_pages(const ReadArguments& arguments, ReadPlan& plan, const std::vector<int>& image_layers) {
  const std::uint32_t batch = arguments.batch ? arguments.batch : 128;
  if (!arguments.pages.empty()) {
    if (!arguments.misses.empty()) throw UsageError("--pages and --misses exclude each other");
    if (arguments.batch) plan.batch = arguments.batch;
    plan.labels.push_back("pages per rank: " + arguments.pages);
    return parse_layer_pages("--pages", arguments.pages);
  }
  plan.batch = batch;
  TablePages pages;
  if (!arguments.misses.empty()) {
    pages = pages_from_misses(arguments.misses, image_layers, arguments.cache_rows, batch);
  } else {
    if (plan.table == "unstamped") throw UsageError("an unstamped device has no table: say --pages LAYER:PAGES,…");
    pages = uncached_pages(load_table_spec(arguments.table.empty() ? plan.table : arguments.table),
                           parse_shard_map(plan.shard_map), plan.table_ranks, batch);
  }
  plan.labels.push_back(pages.label);
  return pages.pages;
}

}  // namespace

void add_read_options(CLI::App& app, ReadArguments& a) {
  app.add_option("--disk", a.disks, "Staged image: file or block device; several are one striped image")
      ->allow_extra_args(false)
      ->type_name("FILE|DEVICE");
  app.add_option("--connect", a.remote.connect, "Servers (slacktier-tier serve) to read from, with --source tcp")
      ->type_name("HOST:PORT,…");
  app.add_option("--key-file", a.remote.key_file, "Key of the servers")->type_name("FILE");
  app.add_option("--rdma-device", a.remote.device, "RDMA device of source rdma, or one for each server: mlx5_0,mlx5_1")
      ->capture_default_str();
  app.add_option("--gid-index", a.remote.gid_index, "GID of that device; default: the best by score")
      ->check(CLI::Range(0, 1023));
  app.add_option("--queue-pairs", a.remote.queue_pairs, "Queue pairs for each thread of source rdma")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--granularity", a.granularity,
                 "What a server sends for a read: page, or one record and its page's trailer");
  app.add_flag("--disk-per-rank", a.disk_per_rank, "Each --disk is an image of its own; rank r reads image r mod n");
  app.add_option("--create", a.create, "Stage an image of this size in the files named by --disk, if it is not there yet")
      ->transform(CLI::AsSizeValue(false));
  app.add_flag("--unstamped", a.unstamped,
               "Read a device or file that is no image: pages cannot be verified, which the result says");
  app.add_option("--pages", a.pages, "Pages per rank and layer, such as 1:700,14:700")->type_name("LAYER:PAGES,…");
  app.add_option("--table", a.table, "Table whose lookups give the pages; default: the image's");
  app.add_option("--batch", a.batch, "Sessions B that the pages belong to (default 128 with a table)");
  app.add_option("--shard-map", a.shard_map, "contiguous or striped, of an image to create")->capture_default_str();
  app.add_option("--misses", a.misses, "Misses file: its mean pages a step, slowest rank");
  app.add_option("--cache-rows", a.cache_rows, "Capacity at which --misses is read, rows per layer and rank")
      ->capture_default_str();
  app.add_option("--ranks", a.ranks, "Ranks that read from these disks at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--source", a.source, "Page source")->capture_default_str();
  app.add_flag("--page-cached", a.page_cached,
               "Let source uring read through the page cache: on a file that memory holds, what software alone costs");
  app.add_option("--wrap", a.wrappers, "Wrapper around the source, such as delayed:latency_us=15,gb_per_s=12.5; repeatable")
      ->allow_extra_args(false)
      ->type_name("NAME:KEY=VALUE,…");
  app.add_option("--tenants", a.tenants, "Instances that share the disks: each page brings reads of as many others less one")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--threads", a.threads, "I/O threads per disk or server, and rank; default: 1, of source rdma 4")
      ->check(CLI::Range(1, 64));
  app.add_option("--queue-depth", a.queue_depth,
                 "Source uring: pages in flight on a disk at most, divided among its threads")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--cpus", a.cpus, "CPUs of the I/O threads, such as 0-3,8; default: free");
  app.add_option("--numa-node", a.numa_node, "Run on the CPUs, and so with the memory, of this NUMA node only")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--sqpoll", a.poller_cpu,
                 "Source uring: a kernel thread on this CPU submits (SQPOLL); its CPU time is reported")
      ->check(CLI::NonNegativeNumber)
      ->type_name("CPU");
  app.add_flag("--iopoll", a.poll_completions,
               "Source uring: ask the disk for completions instead of taking interrupts (IOPOLL), where its driver can");
  app.add_flag("--plain-buffers", a.plain_buffers, "Source uring: do not register the page buffers");
  app.add_flag("--plain-files", a.plain_files, "Source uring: do not register the files");
  app.add_option("--tenant-processes", a.tenant_processes,
                 "Instances that share the disks, each a process of its own that reads the same load with other pages")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--background-write", a.background_mb_per_s,
                 "Write so many MB/s meanwhile, into a nameless file made for it beside the image")
      ->check(CLI::PositiveNumber)
      ->type_name("MB/s");
  app.add_option("--background-folder", a.background_folder, "Folder of that file; default: the image's")
      ->check(CLI::ExistingDirectory);
  app.add_option("--order", a.order, "layer-first or interleaved")->capture_default_str();
  app.add_flag("--verify-checksum", a.verify_checksum, "Check whole pages, not only stamps, inside the timed reads");
  app.add_option("--span", a.span, "Read only the first bytes of each layer's share")->transform(CLI::AsSizeValue(false));
  app.add_option("--page-bytes", a.page_bytes, "Page size of an image to create or of an unstamped device")
      ->capture_default_str();
  app.add_option("--windows", a.windows, "Windows in ms, such as 1:0.27,14:9.35, or a windows file: gives verdicts");
  app.add_option("--resolve-ms", a.resolve_ms, "Resolve time s that the window must hide beside the read")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--max-seconds", a.max_seconds, "End earlier than asked and say which condition was not met")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", a.seed, "Seed of the pages; equal seeds read equal offsets")->capture_default_str();
  app.add_option("--out", a.out, "Result file; raw samples go beside it");
  app.add_option("--format", a.format, "table, md, csv or json")->capture_default_str();
  app.add_flag("--redact", a.redact, "Hash host names, serials and paths in the result");
  app.add_flag("-q,--quiet", a.quiet, "No progress");
}

std::vector<int> parse_cpus(const std::string& text) {
  std::vector<int> cpus;
  std::size_t at = 0;
  const auto refuse = [&] { throw UsageError(fmt::format("--cpus {}: write numbers and ranges, such as 0-3,8", text)); };
  const auto number = [&] {
    std::size_t used = 0;
    int value = -1;
    if (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) value = std::stoi(text.substr(at, 6), &used);
    if (value < 0) refuse();
    at += used;
    return value;
  };
  while (at < text.size()) {
    const int first = number();
    int last = first;
    if (at < text.size() && text[at] == '-') {
      ++at;
      last = number();
    }
    if (last < first) refuse();
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (at < text.size() && (text[at] != ',' || ++at == text.size())) refuse();
  }
  return cpus;
}

ReadPlan plan_reads(const ReadArguments& arguments) {
  ReadPlan plan;
  const bool remote = is_remote_source(arguments.source);
  if (remote != !arguments.remote.connect.empty())
    throw UsageError(remote ? fmt::format("--source {}: name the servers with --connect host:port", arguments.source)
                            : "--connect: servers are read with --source tcp");
  if (remote ? !arguments.disks.empty() || arguments.unstamped || arguments.create > 0 : arguments.disks.empty())
    throw UsageError(remote ? "--connect: the server has the image; leave out --disk, --unstamped and --create"
                            : "name an image with --disk, or a server with --source tcp --connect host:port");
  RemoteOptions servers = arguments.remote;
  if (!arguments.granularity.empty()) servers.granularity = parse_granularity(arguments.granularity);
  std::vector<std::vector<std::string>> groups;  // disks by image
  if (arguments.disk_per_rank)
    for (const auto& disk : arguments.disks) groups.push_back({disk});
  else
    groups.push_back(arguments.disks);
  if (arguments.unstamped) {
    if (arguments.pages.empty())
      throw UsageError("--unstamped: say --pages LAYER:PAGES,…; nothing tells what the device holds");
    if (arguments.create) throw UsageError("--unstamped and --create exclude each other");
    const auto layers = parse_layer_pages("--pages", arguments.pages);
    for (const auto& disks : groups) {
      std::uint64_t least = UINT64_MAX;
      for (const auto& disk : disks) least = std::min(least, disk_bytes(disk));
      plan.images.push_back(unstamped_image(disks, layers, arguments.page_bytes, least));
    }
    plan.table = "unstamped";
    plan.warnings.push_back(
        {"unstamped", "pages without stamps: holes, trimmed or stale blocks cannot be told from data", ""});
  } else if (remote) {
    protocol::Wanted wanted;
    if (!arguments.table.empty()) wanted.fingerprint = load_table_spec(arguments.table).fingerprint();
    plan.images.push_back(open_remote_image(servers, wanted));
    plan.labels.push_back(fmt::format("granularity: {}", to_string(servers.granularity)));
  } else {
    const std::string table = arguments.table.empty() ? "engram_v41" : arguments.table;
    for (const auto& disks : groups) {
      const bool there = std::all_of(disks.begin(), disks.end(), [](const auto& disk) { return fs::exists(disk); });
      if (arguments.create && !there) {
        const TableSpec spec = load_table_spec(table);
        create_image(arguments, spec, disks, 4);
      }
      ImageHeader image = read_image_header(disks);
      if (!image.complete)
        throw UsageError(fmt::format("{}: staging was not finished; run slacktier-tier stage again to resume it", disks[0]));
      plan.images.push_back(image);
    }
  }
  if (!arguments.unstamped) {
    plan.table = plan.images.front().table;
    plan.fingerprint = plan.images.front().fingerprint;
    plan.table_ranks = plan.images.front().ranks;
    plan.shard_map = to_string(plan.images.front().shard_map);
  }
  std::vector<int> layers;
  for (const ImageSegment& segment : plan.images.front().segments)
    if (std::find(layers.begin(), layers.end(), segment.layer) == layers.end()) layers.push_back(segment.layer);
  std::sort(layers.begin(), layers.end());
  plan.pages = asked_pages(arguments, plan, layers);
  if (!arguments.windows.empty()) {
    std::vector<int> wanted;
    for (const LayerPages& layer : plan.pages) wanted.push_back(layer.layer);
    plan.windows = parse_windows(arguments.windows, wanted, plan.batch);
    plan.labels.push_back(plan.windows->label);
    plan.labels.push_back(fmt::format("resolve time s: {} ms, assumed", arguments.resolve_ms));
  }
  plan.load.images = plan.images;
  plan.load.ranks = arguments.ranks;
  plan.load.source = arguments.source;
  plan.load.settings.threads = arguments.threads > 0 ? arguments.threads : arguments.source == "rdma" ? 4 : 1;
  plan.load.settings.remote = servers;
  plan.load.settings.verify_checksum = arguments.verify_checksum;
  plan.load.settings.queue_depth = arguments.queue_depth;
  plan.load.settings.cpus = parse_cpus(arguments.cpus);
  if (arguments.numa_node >= 0) {
    const std::vector<int> cpus = cpus_of_node(arguments.numa_node);
    for (const int cpu : plan.load.settings.cpus)
      if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end())
        throw UsageError(
            fmt::format("--cpus: CPU {} is not of NUMA node {} (CPUs {})", cpu, arguments.numa_node, fmt::join(cpus, ",")));
    run_on_cpus(cpus);
    plan.labels.push_back(fmt::format("on NUMA node {} only", arguments.numa_node));
  }
  const bool uring_only =
      arguments.poller_cpu >= 0 || arguments.poll_completions || arguments.plain_buffers || arguments.plain_files;
  if (uring_only && arguments.source != "uring")
    throw UsageError(fmt::format("--sqpoll, --iopoll, --plain-buffers and --plain-files: are for source uring, not {}",
                                 arguments.source));
  if (arguments.poll_completions && arguments.page_cached)
    throw UsageError("--iopoll and --page-cached exclude each other: the page cache has no completions to poll for");
  plan.load.settings.poller_cpu = arguments.poller_cpu;
  plan.load.settings.poll_completions = arguments.poll_completions;
  plan.load.settings.register_files = !arguments.plain_files;
  if (arguments.plain_buffers) plan.load.settings.registration = Registration::off;
  if (arguments.page_cached) {
    if (arguments.source != "uring")
      throw UsageError(fmt::format("--page-cached: is for source uring, not {}", arguments.source));
    plan.load.settings.direct = false;
    plan.warnings.push_back({"page_cached", "reads go through the page cache: times are of software, not of the disk", ""});
  }
  if (arguments.tenants > 1) plan.load.wrappers.push_back(fmt::format("shared:tenants={}", arguments.tenants));
  for (const auto& wrapper : arguments.wrappers) plan.load.wrappers.push_back(wrapper);
  for (const auto& wrapper : arguments.wrappers) plan.labels.push_back("wrapped: " + wrapper);
  for (const auto& disk : arguments.disks)
    for (const Finding& finding : preflight(disk, image_header_bytes))
      if (!finding.note) plan.warnings.push_back({finding.code, finding.text(), "/settings/image"});
  plan.load.order = parse_submit_order(arguments.order);
  plan.load.seed = arguments.seed;
  plan.load.stamped = !arguments.unstamped;
  if (arguments.span) {
    plan.load.span_pages = arguments.span / plan.images.front().geometry.page_bytes;
    plan.labels.push_back(fmt::format("span: the first {} of each layer", bytes_text(arguments.span)));
  }
  return plan;
}

Envelope read_envelope_of(const ReadPlan& plan, const std::string& command, const Invocation& invocation,
                          std::uint64_t seed) {
  Envelope envelope;
  envelope.kind = "reads";
  Json& settings = envelope.settings;
  settings["model"] = nullptr;
  settings["table"] = plan.table == "unstamped" ? Json(nullptr) : Json(plan.table);
  if (plan.fingerprint) settings["table_fingerprint"] = *plan.fingerprint;
  settings["ranks"] = plan.table_ranks;
  settings["shard_map"] = plan.shard_map;
  settings["device"] = "cpu";
  settings["labels"] = plan.labels;
  settings["page_bytes"] = plan.images.front().geometry.page_bytes;
  settings["image"] = fmt::format("{}", fmt::join(plan.images.front().paths, ", "));
  settings["batch"] = plan.batch ? Json(*plan.batch) : Json(nullptr);
  envelope.warnings = plan.warnings;
  ProvenanceInput input;
  input.program = "slacktier-iobench " + command;
  input.argv = invocation.argv;
  input.seed = seed;
  input.start_unix_s = static_cast<std::int64_t>(std::time(nullptr));
  input.facts["host"] = host_json(read_host_facts());
  for (const auto& image : plan.images)
    for (const auto& path : is_remote_source(plan.load.source) ? std::vector<std::string>() : image.paths)
      input.facts["disks"].push_back(storage_json(read_storage_facts(path, image_header_bytes)));
  envelope.provenance = provenance(input);
  return envelope;
}

}  // namespace slacktier::cli
