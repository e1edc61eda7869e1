#include "tier/core_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace slacktier {
namespace {

bool same_reads(std::span<const PageRead> a, std::span<const PageRead> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const PageRead& x, const PageRead& y) {
    return x.page == y.page && x.buffer == y.buffer && x.records == y.records;
  });
}

bool same_descriptors(std::span<const Descriptor> a, std::span<const Descriptor> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Descriptor& x, const Descriptor& y) { return x.bits == y.bits; });
}

// What differs from the recorded answer; null: nothing.
const char* replay_event(const CoreEvent& event, LayerCore& core) {
  std::vector<std::uint32_t> filled;
  switch (event.kind) {
    case CoreEvent::Kind::indices:
      core.on_indices(event.epoch, event.rows, event.active);
      if (!same_reads(core.reads(), event.reads)) return "the pages to read";
      if (!same_descriptors(core.descriptors(), event.descriptors)) return "the planned descriptors";
      return nullptr;
    case CoreEvent::Kind::pages: {
      const LayerCore::Release release = core.on_pages(event.epoch, event.faults);
      if (release.publish != event.done) return "whether the signal is published";
      return release.publish && release.status != event.status ? "the published status" : nullptr;
    }
    case CoreEvent::Kind::abandon:
      return core.abandon(event.epoch) != event.done ? "whether the step is given up" : nullptr;
    case CoreEvent::Kind::settle:
      if (!same_descriptors(core.descriptors(), event.descriptors)) return "the gathered descriptors";
      core.settle();
      return core.counts() == event.counts ? nullptr : "the counts";
    case CoreEvent::Kind::advance:
      core.advance(event.rows, filled);
      return filled == event.filled ? nullptr : "the slots that an advance fills";
    case CoreEvent::Kind::hold:
      core.hold(event.rows, filled);
      return filled == event.filled ? nullptr : "the slots of held rows";
    case CoreEvent::Kind::resize:
      core.resize_cache(event.value);
      return nullptr;
    case CoreEvent::Kind::dedup:
      core.set_dedup((event.value & 1) != 0, (event.value & 2) != 0);
      return nullptr;
  }
  return "its kind";
}

}  // namespace

std::string replay(const CoreLog& log, LayerCore& core) {
  for (std::size_t i = 0; i < log.size(); ++i)
    if (const char* difference = replay_event(log[i], core))
      return fmt::format("event {} (epoch {}): {} differs from the record", i, log[i].epoch, difference);
  return {};
}

}  // namespace slacktier
