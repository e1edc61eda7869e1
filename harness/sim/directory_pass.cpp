#include "harness/directory_pass.hpp"

#include <utility>

#include "harness/sim/layer_pass.hpp"

namespace slacktier {

DirectoryPasses::DirectoryPasses(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign,
                                 std::vector<std::uint32_t> disk_counts, std::function<bool()> stop)
    : trace_(trace), spec_(spec), campaign_(campaign), disk_counts_(std::move(disk_counts)), stop_(std::move(stop)) {}

const PassResult& DirectoryPasses::at(const PassKey& key) {
  const auto found = results_.find(key);
  if (found != results_.end()) return found->second;
  return results_.emplace(key, run(key)).first->second;
}

PassResult DirectoryPasses::run(const PassKey& key) const {
  LayerPass pass(trace_, spec_, campaign_, key, 0, stop_);
  PassResult result;
  result.host_bytes = pass.host_bytes();
  const std::uint64_t measured = trace_.steps() - key.warm_steps;
  result.steps.reserve(measured);
  for (const std::uint32_t disks : disk_counts_) result.pages_on[disks].assign(measured * disks, 0);
  pass.warm();
  for (std::uint64_t at = 0; at < measured; ++at) {
    result.steps.push_back(pass.step(key.warm_steps + at));
    for (auto& [disks, on] : result.pages_on)
      for (const std::uint32_t page : pass.pages()) ++on[at * disks + page % disks];
  }
  return result;
}

}  // namespace slacktier
