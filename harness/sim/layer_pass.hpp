// One layer on one rank, step by step through its step core, without time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "harness/directory_pass.hpp"
#include "tier/step.hpp"

namespace slacktier {

class LayerPass {
 public:
  // Keeps references. `reserved_rows`: what resize() may ask for; 0: the key's cache never changes. `stop` is asked now and
  // then; true ends the pass with Interrupted. Throws what LayerCore throws, UsageError for a file of hot rows or a seen-set
  // that does not fit.
  LayerPass(const StepTrace& trace, const TableSpec& spec, const Campaign& campaign, const PassKey& key,
            std::uint64_t reserved_rows = 0, std::function<bool()> stop = {});
  ~LayerPass();

  // The key's steps before the first that counts.
  void warm();
  // Step s of the trace; steps come in order, the first one after the warm-up.
  StepOutcome step(std::uint64_t s);
  // Pages that the last step read.
  std::span<const std::uint32_t> pages() const { return pages_; }
  // Between steps, up to the rows reserved.
  void resize(std::uint64_t rows) { core_->resize_cache(rows); }
  // As the live tier holds them: the directory, and buffers for two steps.
  std::uint64_t host_bytes() const;

 private:
  class PageCache;
  std::span<const std::uint32_t> rows_of(std::span<const std::uint32_t> context);
  std::span<const std::uint32_t> active_context(const StepView& step);
  void advance(std::span<const std::uint32_t> context);
  void hold_hot_rows();

  const StepTrace& trace_;
  const TableSpec& spec_;
  const PassKey key_;
  std::function<bool()> stop_;
  std::unique_ptr<RowHash> hash_;
  LayerCoreOptions options_;
  std::shared_ptr<const SeenSet> seen_;
  std::unique_ptr<LayerCore> core_;
  std::unique_ptr<PageCache> page_cache_;
  bool remembers_;  // whether anything that came before matters
  std::vector<std::uint32_t> rows_, active_context_, filled_, local_, pages_;
  std::vector<PageFault> faults_;
};

}  // namespace slacktier
