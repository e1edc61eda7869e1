// The live tier of one rank: carries the step core's actions out on a device's streams, page sources and threads.
//
// Capture (once):  enqueue_begin, then enqueue_layer before each lookup layer, then enqueue_end on the main stream.
// Each step:       begin_step (tokens in, signals armed) -> replay -> finish_step (waits for the worker, reports).
// Between steps:   prefill for a chunk of tokens through the same path, advance / fill_advanced for prefill and warm-up
//                  without reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "platforms/executor.hpp"
#include "tier/checker.hpp"
#include "tier/control.hpp"
#include "tier/core_log.hpp"
#include "tier/gather.hpp"
#include "tier/hash.hpp"
#include "tier/image.hpp"
#include "tier/pool.hpp"
#include "tier/resident_table.hpp"
#include "tier/rows.hpp"
#include "tier/seen_set.hpp"
#include "tier/source.hpp"
#include "tier/step.hpp"

namespace slacktier {

// When a layer's missing pages are read: as soon as they are known, or (a baseline) only when the main stream has come to
// the layer.
enum class ReadMode { prefetch, on_demand };

struct LayerSetup {
  std::string source = "dram";        // of a resident table (tier/resident_table.hpp), or a page source
  std::string peer;                   // of source "peer": who holds the table
  std::vector<std::string> wrappers;  // around the source, outermost first (tier/source.hpp)
  std::vector<std::string> disks;     // of the image, for page sources that read disks
  RemoteOptions remote;               // for those that read from other nodes
  ReadMode read = ReadMode::prefetch;
  bool drop_cache = false;  // page cache of the image, when the tier is made
  bool hints = true;        // announce a batch's pages to the page cache
  int threads = 1;          // I/O threads per disk
  Registration registration = Registration::automatic;
  std::uint64_t cache_rows = 0;           // GPU cache of this layer and rank
  std::uint64_t cache_rows_reserved = 0;  // the most that resize_cache may ask for; below cache_rows it means cache_rows
  std::string policy = "clock";
  const ResidentTable* table = nullptr;  // of resident layers
};

struct TierOptions {
  ShardMap shard_map = ShardMap::contiguous;
  std::uint32_t ranks = 1, rank = 0;
  std::uint32_t max_tokens = 0;      // tokens of a step: sessions * tokens per session
  std::uint32_t prefill_tokens = 0;  // of the largest prefill chunk; 0: no prefill by reads
  std::vector<LayerSetup> layers;    // one per layer of the spec, in depth order
  PageGeometry geometry;
  std::vector<PageFold> folds;            // one per layer
  std::shared_ptr<const TableRows> rows;  // what images and host tables hold; null: generated with the seed
  std::uint64_t seed = 1;                 // of generated rows
  bool first_layer_first = true;  // submit layer 1's pages before planning the next layer; off: plan all, then submit
  bool row_dedup = true, page_dedup = true;
  // Layers that read pages deliver a row of this rank that is not in the set as zeros, without a read. Layers in DRAM
  // deliver all rows. Of the same table, shard map and rank.
  std::shared_ptr<const SeenSet> skip_unseen;
  OutputFormat output = OutputFormat::bf16;  // of every gather
  bool verify_checksum = false;
  Nanos watchdog = 5'000'000'000;  // a step whose row indices, or a layer whose pages, are not in by then is given up
  // Gets each page source that the tier opens; what it returns is used in its place. Empty: nothing.
  std::function<std::unique_ptr<PageSource>(std::unique_ptr<PageSource>)> decorate;
  // How long the worker looks for the step's indices without leaving the CPU, from begin_step on; later it looks now and
  // then. -1: 2 ms where the device's posts do not ring, else not at all.
  Nanos poll_indices = -1;
};

struct LayerReport {
  LayerCounts counts;
  StepStatus status = StepStatus::ok;
  // Nanoseconds from t = 0 (the step's begin on the main stream, on the device's clock; on cpu the host's). -1: did not
  // happen.
  Nanos resolve_begin = -1, resolve_end = -1;  // on the worker
  Nanos submitted = -1;                        // first page handed to the system
  Nanos arrived = -1;                          // last page in
  Nanos opened = -1;                           // the gate was passed
  Nanos stall = 0;                             // time the main stream waited at the gate
  std::string fault;                           // first failed page: disk, page, what was wrong
};

struct StepReport {
  std::uint64_t epoch = 0;
  Nanos step = 0;                        // device time from begin to end of the step
  Nanos indices = -1;                    // the worker saw the indices
  std::uint64_t control_generation = 0;  // changes that a control file had brought before this step
  std::vector<LayerReport> layers;
};

// One layer of a prefill chunk. Times in nanoseconds on the host's clock.
struct PrefillLayerReport {
  LayerCounts counts;
  std::uint32_t waves = 0;
  Nanos resolve = 0;  // directory pass of the chunk
  Nanos read = 0;     // first page submitted until the last one in, gathers between the waves included
  Nanos total = 0;    // from the resolve's begin until every row is delivered
  StepStatus status = StepStatus::ok;
  std::string fault;
};

struct PrefillReport {
  std::uint32_t tokens = 0;
  Nanos indices = 0;  // begin until the row indices are in host memory
  Nanos total = 0;
  std::vector<PrefillLayerReport> layers;
};

// What became of a change of the control file.
struct ControlNews {
  std::uint64_t epoch = 0;       // the step before which it was seen
  std::uint64_t generation = 0;  // of the values that hold since
  std::string problem;           // why the old values stay; empty: the file's hold
};

// Host bytes that one rank of a placement needs: at full geometry, and as allocated by this (possibly scaled) run.
struct HostMemoryCount {
  std::uint64_t full_geometry = 0, allocated = 0, registered = 0;
};

class Tier {
 public:
  // Allocates everything a step needs and starts the worker and the sources. Throws UsageError (a source, policy or disk
  // set that is not there, an image of another table, seed or shard), EnvironmentError, std::system_error.
  Tier(Device& device, const TableSpec& spec, TierOptions options);
  ~Tier();
  Tier(const Tier&) = delete;
  Tier& operator=(const Tier&) = delete;

  void enqueue_begin(Stream& main);
  void enqueue_layer(Stream& main, std::size_t layer_index);
  void enqueue_end(Stream& main);

  // context: [max_tokens][max_ngram] hash ids, active: [max_tokens]. Both are copied. The previous step must be finished.
  // Throws DeviceError when a gate of the previous step is still open: its reset has not run.
  void begin_step(std::span<const std::uint32_t> context, std::span<const std::uint8_t> active);
  // Blocks until the worker has settled the step, whose replay must have been synchronised. The report stays valid until the
  // next call.
  const StepReport& finish_step();

  // Prefills [tokens][max_ngram], at most prefill_tokens of them, on `main` outside any capture while no step is under way:
  // rows are resolved, read and gathered layer by layer, pages in waves of the page pool. Blocks until it is done. With
  // `check`, every `stride`-th row is compared with its origin. The report stays valid until the next call.
  const PrefillReport& prefill(Stream& main, std::span<const std::uint32_t> context, CheckReport* check = nullptr,
                               std::size_t stride = 1, std::size_t offset = 0);

  // Tokens pass through the directories as if decoded or prefilled, without reads: [tokens][max_ngram].
  void advance(std::span<const std::uint32_t> context);
  // Writes the rows that advance brought into the caches from their origin.
  void fill_advanced();

  // Between steps: the rows that a layer's cache may hold, up to those reserved. Rows stay where they are; a smaller cache
  // keeps those that its policy holds hottest, a larger one keeps all. Throws UsageError above the reserved rows and for a
  // layer in DRAM.
  void resize_cache(std::size_t layer_index, std::uint64_t rows);
  // Between steps: local rows, hottest first, enter the empty part of a layer's cache and are written from their origin.
  // With policy "static" they are its content for good, at every size. Layers in DRAM take none.
  void hold(std::size_t layer_index, std::span<const std::uint32_t> local_rows);

  // Changes all that `control` names, between steps and once the last one was checked; or throws UsageError naming the field
  // and changes nothing.
  void apply(const Control& control);
  // From now on begin_step looks at this file and applies it when it has changed. A file that cannot be used changes
  // nothing.
  void watch_control(const std::string& path) { control_file_ = std::make_unique<ControlFile>(path); }
  const std::vector<ControlNews>& control_news() const { return control_news_; }

  // From now on all that the layers' step cores are fed, and answer, is appended to logs[layer] (see tier/core_log.hpp),
  // until the tier ends or record(nullptr). Between steps only. Throws UsageError for a tier that prefills by reads.
  void record(std::vector<CoreLog>* logs);

  // Checks the last step: every `stride`-th gathered row against its origin, and the whole checksum of every page read.
  void check(CheckReport& report, std::size_t stride = 1, std::size_t offset = 0) const;

  const TableSpec& spec() const { return spec_; }
  const LayerCore& core(std::size_t layer_index) const;
  HostMemoryCount host_memory() const;
  std::string describe_source(std::size_t layer_index) const;
  std::string source_activity(std::size_t layer_index) const;  // PageSource::activity; empty for dram

 private:
  struct Batch;
  struct Layer;
  struct OpenSource;
  struct Chunk;
  static constexpr std::uint64_t wave_bit = std::uint64_t{1} << 63;  // epochs of prefill's waves

  std::unique_ptr<Layer> make_layer(std::size_t layer_index, std::uint32_t first_buffer, std::uint32_t buffers);
  OpenSource& open_source(const LayerSetup& setup);
  void prepare_hash();

  void fill_slots(Layer& layer);
  void look_at_control();
  OpenSource& source_for(const Layer& layer, const LayerControl& wanted, const std::string& place);
  void run_worker();
  bool indices_are_in();
  Nanos time_to_look() const;
  void plan_step();
  void start_reads(Layer& layer);
  void start_asked();
  void pages_done(Layer& layer, Batch& batch);
  bool settle_arrived();
  void give_up_late(Nanos now);
  void give_up_unposted(Nanos now);
  static void ask(void* layer);
  GatherArgs gather_args(const Layer& layer) const;
  std::string describe_fault(const Layer& layer, const Batch& batch) const;

  void prefill_layer(Stream& main, Layer& layer, std::span<const std::uint32_t> rows, PrefillLayerReport& report);
  bool await_wave(Layer& layer, Batch& batch, std::size_t wave);
  void give_up_wave(Layer& layer, std::size_t wave, bool submitted);
  void wave_done(Layer& layer, Batch& batch);
  void store_records(Layer& layer, std::uint32_t count);
  void launch_hash(Stream& main, const Buffer& context, const Buffer& rows, std::uint32_t tokens);
  const void* rows_on_host(const Buffer& out, std::size_t bytes) const;
  std::size_t row_output_bytes() const { return std::size_t{spec_.row_values} * output_bytes(options_.output); }

  Device& device_;
  const TableSpec& spec_;
  TierOptions options_;
  std::unique_ptr<RowHash> hash_;
  std::unique_ptr<PagePool> pool_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::unique_ptr<OpenSource>> sources_;
  std::unique_ptr<Stream> side_;
  std::unique_ptr<Event> hashed_, posted_;
  std::unique_ptr<Buffer> tokens_, hash_parameters_, rows_device_, rows_host_, stamps_, signals_;
  std::string hash_kernel_;
  // Records on their way into a cache, and gathered rows on their way to the checker.
  std::unique_ptr<Buffer> filling_, fetched_;
  std::uint32_t* context_ = nullptr;
  std::uint8_t* active_ = nullptr;
  // Of a step that is given up before its indices are known.
  std::vector<std::uint32_t> no_rows_;
  std::vector<std::uint8_t> no_tokens_;
  std::uint64_t epoch_ = 0;
  bool waits_for_post_ = false;
  StepReport report_;
  std::vector<std::uint32_t> advance_rows_, advance_filled_;
  std::unique_ptr<Chunk> chunk_;
  std::uint64_t wave_epoch_ = 0;
  Doorbell wave_bell_;
  std::unique_ptr<ControlFile> control_file_;
  std::vector<ControlNews> control_news_;
  std::uint64_t control_generation_ = 0;

  // Between begin_step, the stream's post, the worker and finish_step.
  Doorbell doorbell_, settled_;
  Post* post_ = nullptr;  // the step's indices are in host memory
  std::atomic<std::uint64_t> begun_epoch_{0}, prepared_epoch_{0}, settled_epoch_{0};
  std::atomic<bool> stop_{false};
  std::uint64_t planned_epoch_ = 0, expected_epoch_ = 0;  // worker only
  Nanos expected_since_ = 0;                              // worker only
  Nanos seen_indices_ = 0;
  std::unique_ptr<Task> worker_;
};

}  // namespace slacktier
