// Other instances on the same disks, as processes of their own: each reads the same load with other pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "iobench/load.hpp"
#include "iobench/measure.hpp"
#include "platforms/child_process.hpp"

namespace slacktier {

class TenantProcesses {
 public:
  // Starts `others` processes that read `pages` batch after batch, at `options`' period, and waits until each has read its
  // first. Before this process has started a thread. Throws DeviceError with what a tenant said that failed.
  TenantProcesses(std::uint32_t others, const LoadOptions& load, const std::vector<LayerPages>& pages,
                  const MeasureOptions& options);

  struct Report {
    std::uint64_t batches = 0;
    double batch_us = 0;  // mean time until a batch's last page was in
  };
  // Ends them. Throws DeviceError when one has failed meanwhile.
  std::vector<Report> stop();

 private:
  std::vector<std::unique_ptr<ChildProcess>> processes_;
};

}  // namespace slacktier
