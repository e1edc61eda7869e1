// The paper's disks and network cards as service models. Every number here entered the model: what it alone decides is
// calibrated, never predicted.
#include "harness/service_model.hpp"
#include "reports/paper.hpp"

namespace slacktier {

ServiceModels paper_services() {
  const Json& paper = paper_values();
  ServiceModels models;
  models.set_label("read times: the paper's, not this machine's");

  // T1 = 0.30 ms + 3.05 us a page of layer 1 + 0.37 us a page of layer 14, pages per rank with four ranks on one disk: the
  // disk's own time per page is a quarter, and layer 14's pages overtake by 0.37 / 3.05.
  const Json& fit = paper.at("fit_T1");
  constexpr double ranks = 4;
  ServiceModel disk;
  disk.label = "paper's NVMe disk";
  disk.latency_us = fit.at("intercept_ms").get<double>() * 1e3;
  disk.page_us = fit.at("us_per_P1_page").get<double>() / ranks;
  disk.later_share = fit.at("us_per_P14_page").get<double>() / fit.at("us_per_P1_page").get<double>();
  // Without layer-1-first I/O the paper hands both layers' pages over together.
  disk.interleaved_share = 1;
  models.add("uring", 1, 1, disk);
  // On four disks "both on 4 disks" (agent, +2.6%) costs more than a quarter of the disks' time: what is left is the rank's
  // own time per page. 29.41 ms * 2.6% + W1 (0.6) - s (0.14) - 0.30 ms over 596 pages, those of the one-disk read time of
  // 2.34 ms by the fit.
  ServiceModel four = disk;
  four.host_us_per_page = 1.55;
  models.add("uring", 4, 1, four);
  models.add("uring", 4, 4, four);

  // One 400 Gb/s card a rank: 0.21 ms for 600 pages, 0.25 ms for 740. The wire alone would take 0.05 ms: work requests
  // count.
  const Json& reads = paper.at("read_time_ms_B128");
  const double t0 = reads.at("rdma_uncached").at(0).get<double>() * 1e3,
               t1 = reads["rdma_uncached"].at(1).get<double>() * 1e3;
  const double p0 = reads.at("rdma_pages_per_rank_layer").at(0).get<double>();
  const double p1 = reads["rdma_pages_per_rank_layer"].at(1).get<double>();
  ServiceModel remote;
  remote.label = "paper's RDMA reads";
  remote.page_us = (t1 - t0) / (p1 - p0);
  remote.latency_us = t0 - remote.page_us * p0;
  remote.own_device = true;
  models.add("rdma", 1, 1, remote);
  return models;
}

}  // namespace slacktier
