#include "probe/control_block.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "probe/hold.hpp"

namespace slacktier {
namespace {

// Words that the device wrote before this ran; the compiler shall not keep an older value.
std::int64_t read(const std::int64_t* word) { return *static_cast<const volatile std::int64_t*>(word); }

}  // namespace

ControlBlock::ControlBlock(Device& device, int layers, std::vector<int> hooked, Nanos watchdog)
    : device_(device),
      layers_(layers),
      hooked_(std::move(hooked)),
      watchdog_(watchdog),
      memory_(device.allocate_host(sizeof(std::int64_t) * (2 + 2 * static_cast<std::size_t>(layers)))),
      words_(static_cast<std::int64_t*>(memory_->host())) {}

bool ControlBlock::is_hooked(int layer) const { return std::find(hooked_.begin(), hooked_.end(), layer) != hooked_.end(); }

void ControlBlock::set(std::span<const LayerDelay> delays) {
  std::vector<std::int64_t> ns(static_cast<std::size_t>(layers_));
  for (const LayerDelay& delay : delays) {
    if (delay.layer < 0 || delay.layer >= layers_)
      throw UsageError(fmt::format("layer {}: the model has layers 0 to {}", delay.layer, layers_ - 1));
    if (!is_hooked(delay.layer))
      throw UsageError(
          fmt::format("layer {}: this step was captured with hooks at {} only", delay.layer, fmt::join(hooked_, ", ")));
    if (!std::isfinite(delay.ms) || delay.ms < 0)
      throw UsageError(fmt::format("layer {}: a delay of {} ms; from 0 on", delay.layer, delay.ms));
    if (delay.ms * 1e6 > static_cast<double>(watchdog_))
      throw UsageError(
          fmt::format("layer {}: a delay of {:.3g} ms is longer than the watchdog of {:.3g} ms: raise it with "
                      "--watchdog-ms",
                      delay.layer, delay.ms, static_cast<double>(watchdog_) / 1e6));
    std::int64_t& at = ns[static_cast<std::size_t>(delay.layer)];
    if (at != 0) throw UsageError(fmt::format("layer {}: two delays of one layer", delay.layer));
    at = std::llround(delay.ms * 1e6);
  }
  // The last replay's begin on both clocks; the two drift apart by some parts in a million, so by nothing until the next
  // one.
  if (const std::int64_t begin = read(words_); begin != 0) {
    to_host_ = device_.host_time(begin) - begin;
    matched_ = true;
  }
  if (!delays.empty() && !matched_) throw std::logic_error("a control block's step was delayed before it ever ran");
  std::copy(ns.begin(), ns.end(), words_ + 2 + layers_);
  words_[0] = words_[1] = 0;
  held_.store(0, std::memory_order_release);
}

double ControlBlock::step_ms() const {
  const std::int64_t begin = read(words_), end = read(words_ + 1);
  if (begin == 0 || end == 0)
    throw DeviceError(
        "a step wrote no times: the hooks at its begin and end did not enter the graph. Does the model run its forward "
        "eagerly, or outside of the capture?");
  return static_cast<double>(end - begin) / 1e6;
}

double ControlBlock::reached_ms(int layer) const {
  return static_cast<double>(read(layer_stamp(layer)) - read(words_)) / 1e6;
}

void ControlBlock::hold(int layer) noexcept {
  const std::int64_t duration = read(delay(layer));
  if (duration > 0) {
    const Clock& clock = monotonic_clock();
    hold_until(std::min(read(words_) + to_host_ + duration, clock.now() + watchdog_));
  }
  held_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace slacktier
