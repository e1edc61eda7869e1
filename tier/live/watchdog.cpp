// What the tier's worker does about work that does not come: the step goes on without it, and its report says what lacked.
#include <fmt/format.h>

#include "platforms/clock.hpp"
#include "tier/live/parts.hpp"

namespace slacktier {

void Tier::give_up_late(Nanos now) {
  for (auto& layer : layers_) {
    if (layer->phase.load(std::memory_order_acquire) != Layer::Phase::reading || now < layer->deadline) continue;
    const std::lock_guard lock(layer->transitions);
    if (!layer->give_up(planned_epoch_)) continue;
    layer->status = StepStatus::timed_out;
    layer->arrived = 0;
    layer->fault = fmt::format("layer {}: pages not in after {} ms; its gate was opened without them",
                               spec_.layers[layer->index].layer, options_.watchdog / 1'000'000);
    layer->signal->publish(planned_epoch_, StepStatus::timed_out);
    if (!layer->current) layer->pages_in(planned_epoch_, {});  // nothing was submitted: no reads to wait for
    layer->phase.store(Layer::Phase::arrived, std::memory_order_release);
  }
}

// A step whose row indices never reached the host: planned as one without tokens, so that nothing is read and every gate
// opens. An overdue post of the same step changes nothing then: what it copies is not looked at, not even now.
void Tier::give_up_unposted(Nanos now) {
  if (expected_epoch_ == planned_epoch_ || now < expected_since_ + options_.watchdog) return;
  // Without a post, nothing but this says that begin_step is done with the layers.
  if (prepared_epoch_.load(std::memory_order_acquire) != expected_epoch_) return;
  planned_epoch_ = expected_epoch_;
  seen_indices_ = now;
  for (auto& layer : layers_) {
    const std::lock_guard lock(layer->transitions);
    layer->resolve_begin = layer->resolve_end = now;
    layer->plan(planned_epoch_, no_rows_, no_tokens_);
    layer->status = StepStatus::timed_out;
    layer->fault = fmt::format("layer {}: row indices not in after {} ms: the step was not launched, or its device hangs",
                               spec_.layers[layer->index].layer, options_.watchdog / 1'000'000);
    layer->signal->publish(planned_epoch_, StepStatus::timed_out);
    layer->phase.store(Layer::Phase::arrived, std::memory_order_release);
  }
}

}  // namespace slacktier
