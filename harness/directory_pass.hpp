// A workload through one layer's step core on one rank, without time: what each step hits, misses and reads.
//
// The core is the live driver's own (tier/step.hpp), fed the same rows in the same order, so the counts are those of a live
// run. What it answers does not depend on when pages arrive, so one pass serves every placement with the same cache.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "harness/interleave.hpp"
#include "tier/hash.hpp"
#include "tier/pages.hpp"
#include "tier/seen_set.hpp"

namespace slacktier {

struct StepOutcome {
  std::uint32_t owned = 0, skipped = 0, hits = 0, reused = 0, misses = 0, pages = 0;
  std::uint32_t cached_pages = 0;  // of a page cache: pages that it held
  bool operator==(const StepOutcome&) const = default;
};

// Of which layer and rank, and with what cache. Equal passes have equal outcomes.
struct PassKey {
  std::size_t layer_index = 0;
  std::uint32_t rank = 0;
  bool resident = false;
  std::uint64_t cache_rows = 0;
  std::string policy = "clock", hot_rows, skip_unseen;
  bool row_dedup = true, page_dedup = true;
  std::uint64_t page_cache_pages = 0;  // host page cache of this layer and rank, least recently used first out; 0: none
  std::uint64_t warm_steps = 0;        // of the trace, through the directory before the first step counts
  auto operator<=>(const PassKey&) const = default;
};

struct PassResult {
  std::vector<StepOutcome> steps;  // those after the warm-up
  // Pages of each step on each disk, [step][disk], by number of disks.
  std::map<std::uint32_t, std::vector<std::uint32_t>> pages_on;
  std::uint64_t host_bytes = 0;  // directory and page buffers of the live tier, at full size
};

class DirectoryPasses {
 public:
  // Keeps references. `disk_counts`: numbers of disks that placements spread pages over. `stop` is asked now and then; true
  // ends a pass with Interrupted.
  DirectoryPasses(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign,
                  std::vector<std::uint32_t> disk_counts, std::function<bool()> stop = {});

  // Runs the pass, or hands out what it was. One directory is held at a time. Throws what LayerCore throws, UsageError for a
  // file of hot rows or a seen-set that does not fit.
  const PassResult& at(const PassKey& key);

 private:
  PassResult run(const PassKey& key) const;

  const StepTrace& trace_;
  const TableSpec& spec_;
  const Campaign& campaign_;
  std::vector<std::uint32_t> disk_counts_;
  std::function<bool()> stop_;
  std::map<PassKey, PassResult> results_;
};

}  // namespace slacktier
