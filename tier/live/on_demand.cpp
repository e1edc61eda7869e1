// Layers that are read only when the main stream has come to them: planned with the others, submitted when asked for.
#include <cstdint>

#include "tier/live/parts.hpp"

namespace slacktier {

// In stream order, just before the layer's gate.
void Tier::ask(void* self) {
  auto& layer = *static_cast<Layer*>(self);
  layer.asked_epoch.store(layer.tier->epoch_, std::memory_order_release);
  layer.tier->doorbell_.ring();
}

// On the worker. The watchdog's time runs from here.
void Tier::start_asked() {
  for (auto& layer : layers_) {
    if (layer->phase.load(std::memory_order_relaxed) != Layer::Phase::planned ||
        layer->asked_epoch.load(std::memory_order_acquire) != planned_epoch_)
      continue;
    layer->phase.store(Layer::Phase::reading, std::memory_order_release);
    layer->deadline = monotonic_clock().now() + options_.watchdog;
    start_reads(*layer);
  }
}

}  // namespace slacktier
