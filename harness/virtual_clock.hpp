// One placement's decode steps in modelled time: what a live tier would do with the pages that each rank's step core asks
// for.
//
// All ranks of a node step together: the model goes on when the slowest rank's rows of a layer are there. Reads queue at the
// devices that the ranks share (harness/virtual_disk.hpp). Times are in microseconds from t = 0, the step's begin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/directory_pass.hpp"
#include "harness/placement.hpp"
#include "harness/service_model.hpp"
#include "harness/step_model.hpp"
#include "harness/virtual_disk.hpp"
#include "tier/table.hpp"

namespace slacktier {

// What the host's work costs, by what it does, in microseconds. Never measured while a run goes on: a run is deterministic.
struct CostModel {
  std::string label;
  double indices_us = 0;  // t = 0 until the worker sees the step's row indices: hash, copy, post
  double resolve_us = 0;  // of a layer's directory pass, and by lookup of the rank and by miss
  double lookup_us = 0, miss_us = 0;
  double release_us = 0;      // a gate that the stream waits at: publish until the stream goes on
  double release_jitter = 0;  // sigma of its logarithm
  double extra_us = 0;        // kappa: what any placement beside the baseline adds to a step
};

// The paper's directory pass of 80 to 160 us a step and its gate of a host-function node.
CostModel paper_costs();
// Of this project's own tier: a worker on one core and the release latency of a gates file's default gate. Throws InputError
// when the file has none. Without a file (null) the gate of an H200 (reports/h200/tier).
CostModel tier_costs(const Envelope* gates);

// What one rank does in one layer of a step.
struct RankStep {
  std::uint32_t lookups = 0, misses = 0, pages = 0, cached_pages = 0;
  const std::uint32_t* on_disk = nullptr;  // pages by disk of the placement; null: spread evenly
};

// Random factors of a step, of mean 1 and the same for all placements: the model's compute and the devices' read times.
struct StepDraw {
  double compute = 1;
  double read_normal = 0;     // standard normal
  double release_normal = 0;  // standard normal
};

struct RankTimes {
  double resolve_us = 0;
  double submitted_us = -1, arrived_us = -1;  // of layers that read; -1: nothing was read
  double opened_us = 0;                       // when this rank's rows are there and its stream could go on
  double stall_us = 0;
};
struct StepTimes {
  double step_us = 0;
  std::vector<RankTimes> ranks;  // [layers][ranks]
};

class VirtualClock {
 public:
  // `ranks`: how many step together. Throws UsageError for a source without read times, and a wrapper that only a live tier
  // has.
  VirtualClock(const TableSpec& spec, const StepModel& model, const Placement& placement, std::uint32_t ranks,
               const ServiceModels& services, const CostModel& costs);

  // `in` is [layers][ranks]. The result stays valid until the next call. Allocates nothing once the largest step has been
  // seen.
  const StepTimes& step(const std::vector<RankStep>& in, const StepDraw& draw = {});

  // Disks that a layer's pages are spread over; 0: it reads none.
  std::uint32_t disks(std::size_t layer_index) const { return layers_[layer_index].disks; }

 private:
  struct Device {  // what layers with the same source, disks and threads share
    std::string source;
    std::vector<std::string> wrappers;
    std::uint32_t disks = 1;
    int threads = 1;
    ServiceModel service;
    std::uint32_t tenants = 1;
    double link_latency_us = 0, link_page_us = 0;
    std::vector<VirtualDisk> queues;           // [own device of each rank or one][disks]
    std::vector<double> host_free, link_free;  // by rank
  };
  struct Layer {
    int depth = 0;
    std::uint32_t disks = 0;
    bool on_demand = false;
    Device* device = nullptr;  // null: resident
    double jitter = 0;
  };
  Device& device_for(const LayerPlacement& wanted, const Placement& placement, std::uint32_t page_bytes,
                     const ServiceModels& services);
  void read_wrappers(Device& device, std::uint32_t page_bytes);
  void submit(std::size_t layer, std::uint32_t rank, const RankStep& in, double at);
  double arrival(std::size_t layer, std::uint32_t rank);

  const StepModel& model_;
  CostModel costs_;
  std::uint32_t ranks_;
  bool first_layer_first_, baseline_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<Layer> layers_;
  struct Pending {
    double at = 0, host = 0, link = 0, pages = 0;
    std::size_t batch[8] = {};  // on each disk
  };
  std::vector<Pending> pending_;  // [layers][ranks]
  std::vector<double> worker_, published_;
  StepTimes times_;
};

}  // namespace slacktier
