// What reading pages costs in modelled time: one line of numbers a source, from a reads file or from the paper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/placement.hpp"
#include "reports/results.hpp"

namespace slacktier {

// T of a batch that is alone: latency + page * pages on the fullest disk, or the host's time for all pages where that is
// longer. With the ranks of a node on one device their queues share it (harness/virtual_disk.hpp).
struct ServiceModel {
  std::string label;             // what it is the time of, for a table's head
  double latency_us = 0;         // of every batch, however small
  double page_us = 0;            // one disk's time per page
  double host_us_per_page = 0;   // the rank's own time per page: submitting, completing, checking; all its disks together
  double later_share = 0;        // how far the next layer's pages overtake (VirtualDisk)
  double interleaved_share = 0;  // the same where a placement's order is "interleaved"
  double jitter = 0;             // sigma of the logarithm of the read time, of mean 1, drawn anew each step
  bool own_device = false;       // each rank has a device of its own, as a network card; else all ranks queue at the same
};

// Read times by source, number of disks and I/O threads.
class ServiceModels {
 public:
  void add(const std::string& source, std::uint32_t disks, int threads, const ServiceModel& model);
  // The times to use for a layer: measured with its source, disks and threads, or with what comes nearest, disks first (a
  // disk's own time per page is what is kept). Throws UsageError when nothing was measured.
  const ServiceModel& find(const LayerPlacement& layer) const;
  // Whether find's answer was measured with just that source, disks and threads.
  bool measured(const LayerPlacement& layer) const;
  const std::string& label() const { return label_; }
  void set_label(const std::string& label) { label_ = label; }

 private:
  struct Entry {
    std::string source;
    std::uint32_t disks = 1;
    int threads = 1;
    ServiceModel model;
  };
  const Entry* nearest(const LayerPlacement& layer) const;
  std::vector<Entry> entries_;
  std::string label_;
};

// Of a reads file: intercept and slopes of the first layer's fit, and the spread of its points. Throws InputError naming the
// file when it holds no fit.
ServiceModels service_from_reads(const Envelope& reads);

// The paper's disks and network cards: its own fit of T1, four ranks on one disk, and its RDMA read times. A rank's time per
// page on four disks is from its read time there (see harness/sim/paper_services.cpp for each number's origin).
ServiceModels paper_services();

}  // namespace slacktier
