// The step core: a pure state machine without threads, clocks, buffers or devices. Row indices and page completions go in,
// actions come out. The live driver carries them out on streams and sources; the virtual clock in modelled time.
//
// Per layer and step:  on_indices -> [Submit] ... on_pages -> Publish ... settle
// Layers share nothing, so a driver may call them for different layers at the same time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/signal.hpp"
#include "tier/descriptor.hpp"
#include "tier/directory.hpp"
#include "tier/pages.hpp"
#include "tier/shard.hpp"
#include "tier/source.hpp"

namespace slacktier {

struct LayerCoreOptions {
  PageGeometry geometry;
  PageFold fold;
  Shard shard;
  bool resident = false;  // rows come from the host table: no directory, no pages
  std::string policy = "clock";
  std::uint64_t cache_rows = 0;
  std::uint64_t cache_rows_reserved = 0;  // the most that resize_cache may ask for; below cache_rows it means cache_rows
  std::uint32_t max_lookups = 0;          // lookups of the largest step: tokens * columns
  std::uint32_t first_buffer = 0;         // this layer's part of the page pool
  std::uint32_t buffers = 0;              // at least pages_bound(); twice that survives one abandoned step unharmed
  Descriptor* descriptors = nullptr;      // [max_lookups] where the gather reads them; null: the core keeps its own
  // Bitmap of local rows: those whose bit is clear are zeros, unread. Null: all are read.
  const std::uint64_t* seen = nullptr;
  bool row_dedup = true;   // a row requested twice in a step is read once
  bool page_dedup = true;  // two rows of one page in a step read it once
};

struct LayerCounts {
  std::uint32_t lookups = 0;  // of active tokens
  std::uint32_t owned = 0;    // of those, rows of this shard
  std::uint32_t skipped = 0;  // of those, never seen: zeros without a read; the others are hits, reused or misses
  std::uint32_t hits = 0, reused = 0, misses = 0, evictions = 0;
  std::uint32_t pages = 0;     // page reads
  std::uint32_t unfilled = 0;  // misses without a free slot
  std::uint32_t failed = 0;    // lookups delivered as zeros because their page failed or came too late
  std::vector<std::uint32_t> owned_by_column, hits_by_column, reused_by_column;
  bool operator==(const LayerCounts&) const = default;
};

class ChunkPlan;

class LayerCore {
 public:
  // Throws what Directory::make throws, and UsageError when `buffers` cannot hold one step.
  explicit LayerCore(LayerCoreOptions options);

  // Plans a step. `rows` is [tokens][columns] global rows, active[t] == 0 masks token t. The pages to read are reads()
  // (folded, no duplicates under page dedup), descriptors() is final unless pages fail. Nothing to read: publish at once.
  // The previous step must have been settled or abandoned.
  void on_indices(std::uint64_t epoch, std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active);

  std::span<const PageRead> reads() const { return reads_; }
  std::span<const Descriptor> descriptors() const { return descriptors_.first(lookups_); }

  // All reads of `epoch` are done; faults[i] belongs to reads()[i]. Lookups of failed pages become zeros. Returns the status
  // to publish. For an abandoned epoch it only ends the quarantine of its buffers; `publish` is false then.
  struct Release {
    bool publish = false;
    StepStatus status = StepStatus::ok;
  };
  Release on_pages(std::uint64_t epoch, std::span<const PageFault> faults);

  // The watchdog gives the step up: every lookup that waits for a page becomes a zero, its buffers are quarantined until
  // on_pages(epoch). False when the pages had arrived already.
  bool abandon(std::uint64_t epoch);

  // After on_pages and the gather: arrived rows enter the directory, buffers return. Off the critical path.
  void settle();

  // Warm-up and prefill without reads: the rows (all global rows of `tokens` tokens) pass through the directory as if read.
  // Slots that got a new row are appended to `filled` (may repeat; the last row of a slot counts: directory().row_of).
  void advance(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled);

  // A prefill chunk between steps, see tier/chunk.hpp: plan_chunk, then each wave's reads in order: on_wave when they are in
  // (faults[i] belongs to plan.reads(wave)[i]; lookups of failed pages become zeros before their gather), then settle_chunk
  // after the last gather. A wave that is given up is zeros; if its reads are still out there, its buffers are quarantined
  // until on_pages(epoch), and later waves that share them must be given up, too.
  void plan_chunk(ChunkPlan& plan, std::span<const std::uint32_t> rows);
  StepStatus on_wave(ChunkPlan& plan, std::size_t wave, std::span<const PageFault> faults);
  void abandon_wave(ChunkPlan& plan, std::size_t wave, std::uint64_t epoch, bool in_flight);
  void settle_chunk(const ChunkPlan& plan);

  // What may change between steps, once the last one is settled. Rows keep their slots: see Directory::resize. Throws
  // UsageError above the reserved rows, and for a resident layer.
  void resize_cache(std::uint64_t rows);
  void set_dedup(bool rows, bool pages);
  // Local rows enter the cache as if read: see Directory::hold. The slots that got a row are appended to `filled`.
  void hold(std::span<const std::uint32_t> local_rows, std::vector<std::uint32_t>& filled);

  const LayerCounts& counts() const { return counts_; }
  bool in_flight() const { return state_ == State::reading; }
  bool resident() const { return options_.resident; }
  const Directory* directory() const { return directory_.get(); }
  const LayerCoreOptions& options() const { return options_; }

 private:
  enum class State { idle, reading, arrived, abandoned };

  void select_owned(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active);
  std::size_t skip_unseen(std::span<std::uint32_t> rows, std::span<std::uint32_t> at, std::uint32_t* skipped) const;
  std::size_t page_slot(std::uint32_t page) const;
  std::uint32_t buffer_for(std::uint32_t page);
  std::span<const std::uint32_t> owned_rows() const { return {local_.data(), owned_}; }
  std::span<const std::uint32_t> owned_at() const { return {at_.data(), owned_}; }
  void drop_lookups();
  void count_by_column();

  struct OwnedColumn {
    std::uint32_t column = 0, first = 0, rows = 0, local = 0;
  };

  LayerCoreOptions options_;
  std::vector<OwnedColumn> owned_columns_;
  std::unique_ptr<Directory> directory_;
  State state_ = State::idle;
  std::uint64_t epoch_ = 0;
  std::size_t lookups_ = 0;
  LayerCounts counts_;
  std::vector<Descriptor> own_descriptors_;
  std::span<Descriptor> descriptors_;
  std::vector<std::uint32_t> local_, at_;  // owned lookups: local row, position; the first owned_ count
  std::size_t owned_ = 0;
  std::vector<std::uint32_t> skipped_at_;  // positions of the skipped lookups; the first counts_.skipped count
  std::vector<Miss> misses_;
  std::vector<Reuse> reuses_;
  std::vector<PageRead> reads_;
  std::vector<std::uint32_t> miss_read_;  // index into reads_ of each miss, or no_read (its page while a step is planned)
  std::vector<std::uint8_t> miss_bad_;
  std::vector<std::uint32_t> free_buffers_;
  // Abandoned steps whose reads are still out there: epoch and its buffers.
  struct Quarantine {
    std::uint64_t epoch = 0;
    std::vector<PageRead> reads;  // the source still holds a span of them
  };
  std::vector<Quarantine> quarantine_;
  // Open-addressed map page -> index into reads_ of this step.
  struct PageSlot {
    std::uint32_t tag = 0;  // step of the entry; entries of other steps are empty
    std::uint32_t page = 0;
    std::uint32_t read = 0;
  };
  std::vector<PageSlot> page_map_;
  std::uint32_t page_tag_ = 0;
};

}  // namespace slacktier
