// A model that Python runs, as the probe steps it: Hugging Face's by id or local config, or what a function of the user's
// makes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"
#include "probe/model.hpp"

namespace slacktier {

struct PythonModelOptions {
  // "python:MODULE:FUNCTION" (called with batch, context and device; python/slacktier/models.py tells what it returns), a
  // folder or config.json, or an id of Hugging Face's (OWNER/NAME).
  std::string model;
  std::string device = "cpu";  // "cpu" or "cuda:0"
  std::string dtype = "bfloat16";
  bool random_weights = false;
  bool stock = false;                   // keep transformers' own attention, norms and caches
  int layers_limit = 0;                 // 0: all layers
  std::vector<std::string> overrides;   // of the config: "hidden_size=1024"
  std::int64_t batch = 1, context = 0;  // sequences; tokens already in the KV cache
  std::uint64_t seed = 1;
};

// Whether a name is one that PythonModel understands, rather than a built-in model's.
bool is_python_model(const std::string& name);

// On a GPU a step is captured by torch on a stream of its own; on cpu it runs eagerly, hooks included.
class PythonModel final : public ProbeModel {
 public:
  // Loads it. Throws UsageError for a model that is not there or has no layers to hook, EnvironmentError for a package,
  // model class or memory that lacks.
  PythonModel(Device& device, const PythonModelOptions& options);
  ~PythonModel() override;
  std::string name() const override { return name_; }
  std::string label() const override { return label_; }
  int layers() const override { return layers_; }
  // Throws CheckFailed, naming the operation, for a forward that cannot be captured.
  std::unique_ptr<CapturedStep> capture(StepHooks& hooks) override;

 private:
  Device& device_;
  int handle_ = -1, layers_ = 0;
  std::string name_, label_;
};

}  // namespace slacktier
