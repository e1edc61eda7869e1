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

// What is wrong in the choice between disks here and servers elsewhere.
void check_place(const ReadArguments& a) {
  const bool remote = is_remote_source(a.source);
  if (remote != !a.remote.connect.empty())
    throw UsageError(remote ? fmt::format("--source {}: name the servers with --connect host:port", a.source)
                            : "--connect: servers are read with --source tcp");
  if (remote ? !a.disks.empty() || a.unstamped || a.create > 0 : a.disks.empty())
    throw UsageError(remote ? "--connect: the server has the image; leave out --disk, --unstamped and --create"
                            : "name an image with --disk, or a server with --source tcp --connect host:port");
  if (!a.unstamped) return;
  if (a.pages.empty()) throw UsageError("--unstamped: say --pages LAYER:PAGES,…; nothing tells what the device holds");
  if (a.create) throw UsageError("--unstamped and --create exclude each other");
}

ImageHeader open_unstamped(const ReadArguments& a, const std::vector<std::string>& disks) {
  std::uint64_t least = UINT64_MAX;
  for (const auto& disk : disks) least = std::min(least, disk_bytes(disk));
  return unstamped_image(disks, parse_layer_pages("--pages", a.pages), a.page_bytes, least);
}

ImageHeader open_staged(const ReadArguments& a, const std::vector<std::string>& disks) {
  const bool there = std::all_of(disks.begin(), disks.end(), [](const auto& disk) { return fs::exists(disk); });
  if (a.create && !there) create_image(a, load_table_spec(a.table.empty() ? "engram_v41" : a.table), disks, 4);
  ImageHeader image = read_image_header(disks);
  if (!image.complete)
    throw UsageError(fmt::format("{}: staging was not finished; run slacktier-tier stage again to resume it", disks[0]));
  return image;
}

void open_images(const ReadArguments& a, ReadPlan& plan) {
  if (const RemoteOptions& servers = plan.load.settings.remote; !servers.connect.empty()) {
    protocol::Wanted wanted;
    if (!a.table.empty()) wanted.fingerprint = load_table_spec(a.table).fingerprint();
    plan.images.push_back(open_remote_image(servers, wanted));
    plan.labels.push_back(fmt::format("granularity: {}", to_string(servers.granularity)));
  } else {
    std::vector<std::vector<std::string>> groups{a.disks};  // disks by image
    if (a.disk_per_rank) {
      groups.clear();
      for (const auto& disk : a.disks) groups.push_back({disk});
    }
    for (const auto& disks : groups) plan.images.push_back(a.unstamped ? open_unstamped(a, disks) : open_staged(a, disks));
  }
  const ImageHeader& image = plan.images.front();
  plan.table = image.table;
  if (a.unstamped) {
    plan.warnings.push_back(
        {"unstamped", "pages without stamps: holes, trimmed or stale blocks cannot be told from data", ""});
  } else {
    plan.fingerprint = image.fingerprint;
    plan.table_ranks = image.ranks;
    plan.shard_map = to_string(image.shard_map);
  }
}

// The CPUs of --cpus and --numa-node; this process then runs on that node only.
void pin(const ReadArguments& a, ReadPlan& plan) {
  plan.load.settings.cpus = parse_cpus(a.cpus);
  if (a.numa_node < 0) return;
  const std::vector<int> cpus = cpus_of_node(a.numa_node);
  for (const int cpu : plan.load.settings.cpus)
    if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end())
      throw UsageError(
          fmt::format("--cpus: CPU {} is not of NUMA node {} (CPUs {})", cpu, a.numa_node, fmt::join(cpus, ",")));
  run_on_cpus(cpus);
  plan.labels.push_back(fmt::format("on NUMA node {} only", a.numa_node));
}

// How source uring is told to read; other sources have none of it.
void plan_engine(const ReadArguments& a, ReadPlan& plan) {
  SourceOptions& settings = plan.load.settings;
  const bool uring_only = a.poller_cpu >= 0 || a.poll_completions || a.plain_buffers || a.plain_files;
  if (uring_only && a.source != "uring")
    throw UsageError(
        fmt::format("--sqpoll, --iopoll, --plain-buffers and --plain-files: are for source uring, not {}", a.source));
  if (a.poll_completions && a.page_cached)
    throw UsageError("--iopoll and --page-cached exclude each other: the page cache has no completions to poll for");
  settings.queue_depth = a.queue_depth;
  settings.poller_cpu = a.poller_cpu;
  settings.poll_completions = a.poll_completions;
  settings.register_files = !a.plain_files;
  if (a.plain_buffers) settings.registration = Registration::off;
  if (!a.page_cached) return;
  if (a.source != "uring") throw UsageError(fmt::format("--page-cached: is for source uring, not {}", a.source));
  settings.direct = false;
  plan.warnings.push_back({"page_cached", "reads go through the page cache: times are of software, not of the disk", ""});
}

}  // namespace

ReadPlan plan_reads(const ReadArguments& a) {
  check_place(a);
  ReadPlan plan;
  LoadOptions& load = plan.load;
  load.settings.remote = a.remote;
  if (!a.granularity.empty()) load.settings.remote.granularity = parse_granularity(a.granularity);
  open_images(a, plan);
  std::vector<int> layers;
  for (const ImageSegment& segment : plan.images.front().segments)
    if (std::find(layers.begin(), layers.end(), segment.layer) == layers.end()) layers.push_back(segment.layer);
  std::sort(layers.begin(), layers.end());
  plan.pages = asked_pages(a, plan, layers);
  if (std::all_of(plan.pages.begin(), plan.pages.end(), [](const LayerPages& layer) { return layer.pages == 0; }))
    throw UsageError(fmt::format("pages {}: no layer reads one; there is nothing to measure", to_string(plan.pages)));
  if (!a.windows.empty()) {
    std::vector<int> wanted;
    for (const LayerPages& layer : plan.pages) wanted.push_back(layer.layer);
    plan.windows = parse_windows(a.windows, wanted, plan.batch);
    plan.labels.push_back(plan.windows->label);
    plan.labels.push_back(fmt::format("resolve time s: {} ms, assumed", a.resolve_ms));
  }
  load.images = plan.images;
  load.ranks = a.ranks;
  load.source = a.source;
  load.settings.threads = a.threads > 0 ? a.threads : a.source == "rdma" ? 4 : 1;
  load.settings.verify_checksum = a.verify_checksum;
  pin(a, plan);
  plan_engine(a, plan);
  if (a.tenants > 1) load.wrappers.push_back(fmt::format("shared:tenants={}", a.tenants));
  for (const auto& wrapper : a.wrappers) {
    load.wrappers.push_back(wrapper);
    plan.labels.push_back("wrapped: " + wrapper);
  }
  for (const auto& disk : a.disks)
    for (const Finding& finding : preflight(disk, image_header_bytes))
      if (!finding.note) plan.warnings.push_back({finding.code, finding.text(), "/settings/image"});
  load.order = parse_submit_order(a.order);
  load.seed = a.seed;
  load.stamped = !a.unstamped;
  if (a.span) {
    load.span_pages = a.span / plan.images.front().geometry.page_bytes;
    plan.labels.push_back(fmt::format("span: the first {} of each layer", bytes_text(a.span)));
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
