// Every transition of a layer's step core passes through here, so that a recorded tier misses none.
#include <cstdint>

#include "platforms/error.hpp"
#include "tier/live/parts.hpp"

namespace slacktier {
namespace {

CoreEvent event_of(CoreEvent::Kind kind, std::uint64_t epoch = 0) {
  CoreEvent event;
  event.kind = kind;
  event.epoch = epoch;
  return event;
}

}  // namespace

void Tier::record(std::vector<CoreLog>* logs) {
  if (logs && options_.prefill_tokens > 0)
    throw UsageError("record: prefill by reads is not recorded; make the tier with prefill_tokens 0");
  if (logs) logs->resize(layers_.size());
  for (auto& layer : layers_) {
    const std::lock_guard lock(layer->transitions);
    layer->log = logs ? &(*logs)[layer->index] : nullptr;
  }
}

void Tier::Layer::plan(std::uint64_t epoch, std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active) {
  core->on_indices(epoch, rows, active);
  if (!log) return;
  CoreEvent event = event_of(CoreEvent::Kind::indices, epoch);
  event.rows.assign(rows.begin(), rows.end());
  event.active.assign(active.begin(), active.end());
  event.reads.assign(core->reads().begin(), core->reads().end());
  event.descriptors.assign(core->descriptors().begin(), core->descriptors().end());
  log->push_back(std::move(event));
}

LayerCore::Release Tier::Layer::pages_in(std::uint64_t epoch, std::span<const PageFault> faults) {
  const LayerCore::Release release = core->on_pages(epoch, faults);
  if (log) {
    CoreEvent event = event_of(CoreEvent::Kind::pages, epoch);
    event.faults.assign(faults.begin(), faults.end());
    event.done = release.publish;
    event.status = release.status;
    log->push_back(std::move(event));
  }
  return release;
}

bool Tier::Layer::give_up(std::uint64_t epoch) {
  const bool given_up = core->abandon(epoch);
  if (log) {
    CoreEvent event = event_of(CoreEvent::Kind::abandon, epoch);
    event.done = given_up;
    log->push_back(std::move(event));
  }
  return given_up;
}

void Tier::Layer::settle() {
  CoreEvent event = event_of(CoreEvent::Kind::settle);
  if (log) event.descriptors.assign(core->descriptors().begin(), core->descriptors().end());
  core->settle();
  if (!log) return;
  event.counts = core->counts();
  log->push_back(std::move(event));
}

void Tier::Layer::advance(std::span<const std::uint32_t> rows, std::vector<std::uint32_t>& filled) {
  const std::size_t before = filled.size();
  core->advance(rows, filled);
  if (!log) return;
  CoreEvent event = event_of(CoreEvent::Kind::advance);
  event.rows.assign(rows.begin(), rows.end());
  event.filled.assign(filled.begin() + static_cast<std::ptrdiff_t>(before), filled.end());
  log->push_back(std::move(event));
}

void Tier::Layer::hold(std::span<const std::uint32_t> local_rows, std::vector<std::uint32_t>& filled) {
  const std::size_t before = filled.size();
  core->hold(local_rows, filled);
  if (!log) return;
  CoreEvent event = event_of(CoreEvent::Kind::hold);
  event.rows.assign(local_rows.begin(), local_rows.end());
  event.filled.assign(filled.begin() + static_cast<std::ptrdiff_t>(before), filled.end());
  log->push_back(std::move(event));
}

void Tier::Layer::resize_cache(std::uint64_t rows) {
  core->resize_cache(rows);
  if (!log) return;
  log->push_back(event_of(CoreEvent::Kind::resize));
  log->back().value = rows;
}

void Tier::Layer::set_dedup(bool rows, bool pages) {
  core->set_dedup(rows, pages);
  if (!log) return;
  log->push_back(event_of(CoreEvent::Kind::dedup));
  log->back().value = std::uint64_t{rows} | std::uint64_t{pages} << 1;
}

}  // namespace slacktier
