// What one captured step reads at every replay: which layers are delayed, by how much, since when. One graph so serves every
// layer and delay.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "platforms/device.hpp"

namespace slacktier {

// Layer `layer` may not start before `ms` after the step's begin.
struct LayerDelay {
  int layer = 0;
  double ms = 0;
};

class ControlBlock {
 public:
  // For layers 0 … layers - 1, of which `hooked` can be delayed. No delay may be longer than `watchdog`.
  ControlBlock(Device& device, int layers, std::vector<int> hooked, Nanos watchdog);

  // Between two replays. Throws UsageError for a layer that the model does not have or that has no hook, two delays of one
  // layer, a delay that is negative or no number or longer than the watchdog.
  void set(std::span<const LayerDelay> delays);
  // After a replay: the step's time by the device's own clock, and when the own work of layer k began, where stamps were
  // asked for.
  // Throws DeviceError when the replay wrote no times.
  double step_ms() const;
  double reached_ms(int layer) const;

  int layers() const { return layers_; }
  const std::vector<int>& hooked() const { return hooked_; }
  bool is_hooked(int layer) const;

  // For what stands in the step: addresses of host-mapped words that live as long as this block.
  std::int64_t* begin_stamp() const { return words_; }
  std::int64_t* end_stamp() const { return words_ + 1; }
  std::int64_t* layer_stamp(int layer) const { return words_ + 2 + layer; }
  const std::int64_t* delay(int layer) const { return words_ + 2 + layers_ + layer; }

  // Called by the host node of a layer, on whatever thread runs it: returns when the layer's delay since the step's begin
  // has passed, at once without one. Counts itself.
  void hold(int layer) noexcept;
  // Host nodes run since set().
  std::uint32_t held() const { return held_.load(std::memory_order_acquire); }

 private:
  Device& device_;
  const int layers_;
  const std::vector<int> hooked_;
  const Nanos watchdog_;
  const std::unique_ptr<Buffer> memory_;
  std::int64_t* const words_;  // begin, end, a stamp and a delay of each layer
  Nanos to_host_ = 0;          // what is added to the device's clock
  bool matched_ = false;       // to_host_ is known
  std::atomic<std::uint32_t> held_{0};
};

}  // namespace slacktier
