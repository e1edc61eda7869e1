// The options of every command that reads.
#include <fmt/format.h>

#include <cctype>
#include <cstdint>

#include "iobench/cli/commands.hpp"
#include "platforms/error.hpp"

namespace slacktier::cli {

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

}  // namespace slacktier::cli
