// One configuration of a campaign, ready to run: a tier, its captured decode graph, and the samples it has collected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "harness/configuration.hpp"
#include "harness/images.hpp"
#include "harness/interleave.hpp"
#include "harness/resident_tables.hpp"
#include "harness/step_model.hpp"
#include "tier/tier.hpp"

namespace slacktier {

// Per prefill chunk of one configuration; filled when the campaign prefills by reads.
struct PrefillSamples {
  struct Layer {
    std::vector<double> pages, waves, read_ms, total_ms;
    std::uint64_t owned = 0, hits = 0, reused = 0;
    std::map<std::string, std::int64_t> status;
  };
  std::uint64_t tokens = 0;
  std::vector<double> chunk_ms;
  std::vector<Layer> layers;
};

class Rig {
 public:
  // Builds tier and graph (none where the campaign runs without). `tables` holds the table of each layer that reads no
  // pages.
  Rig(Device& device, const TableSpec& spec, const Campaign& campaign, const Placement& placement, const StepModel& model,
      const Images& images, const ResidentTables& tables);

  // Steps of the trace through the directories without reads, then the caches filled from the rows' origin. Caches of policy
  // "static" get the rows of the placement's file, or those that these steps ask for most.
  void warm(const StepTrace& trace, std::uint64_t steps);
  // One live step. `measured` false: run and checked, not recorded. Throws DeviceError naming the page and disk of a failed
  // read.
  void step(const StepView& step, bool measured);
  // Starts a block: block(b) of the samples are its steps.
  void begin_block() { blocks_.emplace_back(); }
  void drop_empty_block() {
    if (!blocks_.empty() && blocks_.back().empty()) blocks_.pop_back();
  }

  const Placement& placement() const { return placement_; }
  const std::vector<std::vector<double>>& blocks() const { return blocks_; }  // step_ms by block
  const std::vector<LayerSamples>& layers() const { return layers_; }
  const PrefillSamples& prefills() const { return prefills_; }
  const CheckReport& checks() const { return checks_; }
  Tier& tier() { return *tier_; }
  std::uint64_t rss_growth() const { return rss_growth_; }

 private:
  void enqueue();  // one step's operations
  void hold_hot_rows(const StepTrace& trace, std::uint64_t steps);
  // Contexts of the step's active tokens, one after another; valid until the next call.
  std::span<const std::uint32_t> active_context(const StepView& step);
  void record(const StepReport& report);
  void prefill(const StepView& step, bool measured);

  const TableSpec& spec_;
  const Campaign& campaign_;
  const StepModel& model_;
  Placement placement_;
  std::uint64_t rss_growth_ = 0;
  std::unique_ptr<Tier> tier_;
  std::unique_ptr<Stream> main_;
  std::unique_ptr<Graph> graph_;  // null: operations are queued each step
  std::vector<std::uint32_t> active_context_;
  std::vector<std::vector<double>> blocks_;
  std::vector<LayerSamples> layers_;
  PrefillSamples prefills_;
  CheckReport checks_;
};

}  // namespace slacktier
