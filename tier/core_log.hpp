// What a live driver fed the step core of one layer, and what the core answered: a record from which the same steps can be
// taken again, without devices and sources, and must give the same actions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tier/step.hpp"

namespace slacktier {

struct CoreEvent {
  enum class Kind : std::uint8_t { indices, pages, abandon, settle, advance, hold, resize, dedup };

  Kind kind = Kind::settle;
  std::uint64_t epoch = 0;           // of indices, pages, abandon
  std::uint64_t value = 0;           // resize: rows; dedup: rows | pages << 1
  std::vector<std::uint32_t> rows;   // indices, advance: global rows; hold: local ones
  std::vector<std::uint8_t> active;  // indices
  std::vector<PageFault> faults;     // pages
  // The answer.
  bool done = false;                    // pages: publish; abandon: given up
  StepStatus status = StepStatus::ok;   // pages
  std::vector<PageRead> reads;          // indices
  std::vector<Descriptor> descriptors;  // indices; settle: as the gather has seen them
  std::vector<std::uint32_t> filled;    // advance, hold: slots
  LayerCounts counts;                   // settle
};

using CoreLog = std::vector<CoreEvent>;

// Feeds a fresh core, made with the options of the recorded one, what the record holds. Empty when every answer is the
// recorded one; otherwise the first event that differs, and in what.
std::string replay(const CoreLog& log, LayerCore& core);

}  // namespace slacktier
