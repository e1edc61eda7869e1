// What a probe of windows needs of a model: a decode step that can be captured with hooks in it, and replayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "platforms/device.hpp"

namespace slacktier {

// Called while a step is queued or captured, on the stream that it runs on: begin, before_layer for each layer in depth
// order, end.
class StepHooks {
 public:
  virtual ~StepHooks() = default;
  virtual void begin(Stream& main) = 0;
  virtual void before_layer(Stream& main, int layer) = 0;
  virtual void end(Stream& main) = 0;
};

class CapturedStep {
 public:
  virtual ~CapturedStep() = default;
  // Runs the step once and waits for its end.
  virtual void replay() = 0;
  // Operations and host functions of one replay, where the model can tell.
  virtual std::optional<std::size_t> operations() const = 0;
  virtual std::optional<std::size_t> host_functions() const = 0;
};

class ProbeModel {
 public:
  virtual ~ProbeModel() = default;
  virtual std::string name() const = 0;
  virtual std::string label() const = 0;  // what a table's head says of it; may be empty
  virtual int layers() const = 0;
  // The step must call the hooks in order, each layer's once. `hooks` outlives the step.
  virtual std::unique_ptr<CapturedStep> capture(StepHooks& hooks) = 0;
};

// Layers of given times and nothing else.
class SyntheticModel final : public ProbeModel {
 public:
  // Throws UsageError for no layers or a negative time.
  SyntheticModel(Device& device, std::vector<Nanos> layer_times, std::string label);
  std::string name() const override { return "synthetic"; }
  std::string label() const override { return label_; }
  int layers() const override { return static_cast<int>(layer_times_.size()); }
  std::unique_ptr<CapturedStep> capture(StepHooks& hooks) override;

 private:
  Device& device_;
  const std::vector<Nanos> layer_times_;
  const std::string label_;
  const std::unique_ptr<Stream> main_;
};

}  // namespace slacktier
