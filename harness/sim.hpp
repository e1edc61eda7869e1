// Campaigns on the virtual clock: the same steps, hashes, directories and placements as a live run, in modelled time. No
// bytes are moved and no clock is read, so equal campaigns and options give equal results, bit for bit.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "harness/configuration.hpp"
#include "harness/directory_pass.hpp"
#include "harness/service_model.hpp"
#include "harness/split_search.hpp"
#include "harness/step_model.hpp"
#include "harness/virtual_clock.hpp"
#include "reports/results.hpp"

namespace slacktier {

class StepFeed;

struct SimOptions {
  StepModel model;
  ServiceModels services;
  CostModel costs;
  std::vector<std::uint32_t> ranks;  // of the campaign's; they share devices. Empty: all of them
  double step_jitter = 0;            // sigma of the logarithm of the model's compute, drawn anew each step
  std::string token_map;             // file of the table's token map, for traces of raw ids
  std::string samples_dir;           // raw step times as .npy files beside the result; empty: none are kept
  bool controller = false;           // a split controller moves cache rows of the one placement beside the baseline
  bool quiet = false;
  std::function<bool()> stop;  // asked now and then; true ends the run with Interrupted
};

// Kind results, as run_campaign's. Throws UsageError and InputError for what cannot be run: prefill by reads, a source
// without read times, faulty disks.
Envelope simulate_campaign(const Campaign& campaign, const SimOptions& options);

// What simulate_campaign would do: memory and modelled steps, as lines of text. It stages and reads nothing.
std::vector<std::string> plan_simulated(const Campaign& campaign);
// Directories of all layers and ranks, which a split controller's run holds at once; other runs hold one at a time.
double directories_gib(const TableSpec& spec);

// One workload of it, for campaigns that are made of several.
class SimWorkload {
 public:
  // Keeps references to spec and campaign. Records the workload's steps.
  SimWorkload(const TableSpec& spec, const Campaign& campaign, const Workload& workload, const TokenMap& map,
              const SimOptions& options);

  // Steps of a placement, [block][step] in ms, and each rank's samples. What step cores answer is kept for later placements.
  struct Run {
    std::vector<std::vector<double>> blocks;
    std::vector<LayerSamples> samples;  // [layers][ranks]
    std::uint64_t host_bytes_full = 0;  // of the node at the table's full size
  };
  // Page cache of buffered and mmap sources: pages of each layer and rank; 0: none but the read itself.
  Run run(const Placement& placement, std::uint64_t page_cache_pages = 0);
  // The same while `search` moves cache rows between the placement's layers. All directories are held at once.
  Run run(const Placement& placement, SplitSearch& search);
  // `baseline` null: this is the baseline.
  ConfigurationResult result(const Placement& placement, const Run& run, const Run* baseline,
                             const std::string& baseline_name) const;

  const StepTrace& trace() const { return trace_; }
  const std::vector<std::uint32_t>& ranks() const { return ranks_; }

 private:
  PassKey pass_key(const Placement& placement, std::size_t layer_index, std::uint64_t page_cache_pages) const;
  Run run(const Placement& placement, StepFeed& feed);

  const TableSpec& spec_;
  const Campaign& campaign_;
  Workload workload_;
  SimOptions options_;
  std::vector<std::uint32_t> ranks_;
  StepTrace trace_;
  DirectoryPasses passes_;
};

}  // namespace slacktier
