// How a layer of a captured step is delayed. Two mechanisms that share nothing but the control block, so that what they
// agree on is not an artefact of either.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/control_block.hpp"
#include "probe/model.hpp"

namespace slacktier {

class Injector {
 public:
  virtual ~Injector() = default;
  // While a step is captured. `control` outlives the step. begin: after the step's first timestamp. before_layer: for hooked
  // layers. end: before its last timestamp.
  virtual void begin(Stream& main, ControlBlock& control) = 0;
  virtual void before_layer(Stream& main, ControlBlock& control, int layer) = 0;
  virtual void end(Stream& main) = 0;
  // Operations and host functions that `hooks` hooks add to a graph.
  virtual std::size_t operations(std::size_t hooks) const = 0;
  virtual std::size_t host_functions(std::size_t hooks) const = 0;
};

// "host-node": one host function a hooked layer on a side stream, queued at the step's begin; the layer waits for its own.
// The paper's. Host functions are serialised, so those behind a delayed one run late: harmless, since the layers that wait
// for them come after the delayed one. "device-clock": the stream itself looks at the device's clock. No host function, no
// host thread. Throws UsageError for another name.
std::unique_ptr<Injector> make_injector(const std::string& name, Device& device);
std::vector<std::string> injector_names();

// A step's hooks: times at begin and end, an injector at the hooked layers (none: a step without hooks), and a time before
// each layer when asked for.
class InjectingHooks final : public StepHooks {
 public:
  InjectingHooks(ControlBlock& control, Injector* injector, bool stamp_layers)
      : control_(control), injector_(injector), stamp_layers_(stamp_layers) {}
  void begin(Stream& main) override;
  void before_layer(Stream& main, int layer) override;
  void end(Stream& main) override;
  // Throws CheckFailed unless the captured step has called begin, every layer and end, in order and once.
  void check_calls() const;

 private:
  ControlBlock& control_;
  Injector* const injector_;
  const bool stamp_layers_;
  std::vector<int> called_;
  int begins_ = 0, ends_ = 0;
};

}  // namespace slacktier
