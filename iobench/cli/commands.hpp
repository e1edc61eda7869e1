// The commands of slacktier-iobench, and what they share: which pages of which image, how they are read, what comes out.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iobench/background_write.hpp"
#include "iobench/load.hpp"
#include "iobench/measure.hpp"
#include "iobench/tenants.hpp"
#include "iobench/verdict.hpp"
#include "reports/reads_file.hpp"
#include "reports/table.hpp"

namespace slacktier::cli {

struct Invocation {
  std::vector<std::string> argv;
};
using Command = std::function<int()>;

Command add_run(CLI::App& app, const Invocation& invocation);
Command add_sweep(CLI::App& app, const Invocation& invocation);
Command add_compare(CLI::App& app);
Command add_preflight(CLI::App& app);

// Options of every command that reads.
struct ReadArguments {
  std::vector<std::string> disks, wrappers;
  std::uint32_t tenants = 1;
  bool disk_per_rank = false, unstamped = false, verify_checksum = false, page_cached = false;
  std::string pages, table, shard_map = "contiguous", misses, source = "uring", order = "layer-first", windows, cpus;
  std::uint32_t batch = 0, ranks = 1, page_bytes = 4096;
  std::uint64_t cache_rows = 0, create = 0, span = 0, seed = 1;
  RemoteOptions remote;
  std::string granularity;
  int threads = 0;  // 0: as the source is used to
  double resolve_ms = 0.1, max_seconds = 60;
  int poller_cpu = -1, numa_node = -1;
  bool poll_completions = false, plain_buffers = false, plain_files = false;
  std::uint32_t tenant_processes = 1, queue_depth = 128;
  double background_mb_per_s = 0;
  std::string background_folder;
  std::string out, format = "table";
  bool quiet = false, redact = false;
};
void add_read_options(CLI::App& app, ReadArguments& arguments);

// What the arguments come to: images opened (or created), pages per layer.
struct ReadPlan {
  std::vector<ImageHeader> images;
  std::vector<LayerPages> pages;
  std::string table;
  std::optional<std::string> fingerprint;
  std::uint32_t table_ranks = 1;
  std::string shard_map = "contiguous";
  std::optional<std::uint32_t> batch;  // that the pages belong to; empty: not known
  std::vector<std::string> labels;     // for tables' heads
  std::vector<Warning> warnings;
  std::optional<Windows> windows;
  LoadOptions load;
};
// Throws UsageError naming option and fix, and what opening or creating the image throws.
ReadPlan plan_reads(const ReadArguments& arguments);

// What else happens on the disks and CPUs while a load is measured: other tenants' processes, writes, the kernel's polling
// threads. Made before this process has started a thread.
class Neighbours {
 public:
  Neighbours(const ReadArguments& arguments, const ReadPlan& plan, const MeasureOptions& options);
  ~Neighbours();
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

  // Before a load is measured, and after: sets the load's engine facts.
  void begin();
  void end(ReadResult& result);
  // Ends them and adds what they did to the labels of the file. Throws DeviceError when one has failed.
  void stop(Envelope& envelope);

 private:
  const std::uint32_t tenant_processes_;
  const double mb_per_s_;
  const int poller_cpu_;
  std::unique_ptr<TenantProcesses> tenants_;
  std::unique_ptr<BackgroundWrite> writes_;
  Nanos began_ = 0, poller_began_ = 0;
};

// Envelope with settings and provenance of a plan; results are still to be set.
Envelope read_envelope_of(const ReadPlan& plan, const std::string& command, const Invocation& invocation,
                          std::uint64_t seed);

// What is known of one load's configuration before it is measured.
ReadResult describe_load(const ReadPlan& plan, const LoadOptions& options, const Load& load, bool paced);
// Statistics of a measured point; raw samples go to `folder` as NAME.npy when it is not empty.
ReadPoint point_result(const PointSamples& samples, std::uint32_t ranks, const std::string& folder, const std::string& name);

// A measurement that was interrupted or met a page that failed says so among the warnings.
void note_early_end(Envelope& envelope, const Measurement& measured);

// "run order, first round to last: T1 +0.3% [-1.0, +1.6]": the slope over the rounds; empty for fewer than five.
std::string drift_text(const PointSamples& point);

// A warning where it is more than 5%, and not by chance.
void note_drift(Envelope& envelope, const PointSamples& point);

// Where the raw samples of a result file go: a folder beside it; empty for no file.
std::string samples_folder(const std::string& out);

// "0-3,8". Throws UsageError.
std::vector<int> parse_cpus(const std::string& text);

// Writes the file (if --out) and prints `table` as --format says; json prints the envelope.
void deliver(Envelope& envelope, const ReadArguments& arguments, const std::vector<Table>& tables);

Table point_table(const Envelope& envelope);    // one row a point and layer
Table verdict_table(const Envelope& envelope);  // one row a layer
std::string verdict_line(const ReadVerdict& verdict, const std::optional<Distribution>& t);

}  // namespace slacktier::cli
