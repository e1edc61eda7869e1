#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>

#include "platforms/error.hpp"
#include "probe/python_model.hpp"
#include "python/embedded.hpp"

namespace slacktier {
namespace {

constexpr const char* module = "slacktier.models";
// What Python says with a call of a hook, beside the number of a layer.
constexpr int hook_begin = -1, hook_end = -2;

// The hooks of one step as Python calls them: by address, on the stream that it names by its native handle.
class HookCalls {
 public:
  HookCalls(Device& device, StepHooks& hooks) : device_(device), hooks_(hooks) {}

  Json address() {
    return {{"function", reinterpret_cast<std::uintptr_t>(&HookCalls::call)},
            {"user", reinterpret_cast<std::uintptr_t>(this)}};
  }
  // A call into Python that calls hooks. Their own error is what counts, not the one that Python makes of it.
  Json python(const char* function, const Json& arguments) {
    failure_ = nullptr;
    try {
      return call_python(module, function, arguments);
    } catch (...) {
      if (failure_) std::rethrow_exception(failure_);
      throw;
    }
  }

 private:
  static int call(void* user, std::uintptr_t stream, int what) noexcept {
    auto& self = *static_cast<HookCalls*>(user);
    try {
      self.run(stream, what);
      return 0;
    } catch (...) {
      self.failure_ = std::current_exception();
      return 1;
    }
  }
  void run(std::uintptr_t native, int what) {
    auto& stream = streams_[native];
    // Without a stream of Python's, its own thread does the work: it goes on when the hook is through.
    if (!stream) stream = native == 0 ? device_.create_stream("python") : device_.adopt_stream(native, "python");
    if (what == hook_begin)
      hooks_.begin(*stream);
    else if (what == hook_end)
      hooks_.end(*stream);
    else
      hooks_.before_layer(*stream, what);
    if (native == 0) stream->synchronize();
  }

  Device& device_;
  StepHooks& hooks_;
  std::map<std::uintptr_t, std::unique_ptr<Stream>> streams_;
  std::exception_ptr failure_;
};

class PythonStep final : public CapturedStep {
 public:
  PythonStep(int model, Device& device, StepHooks& hooks)
      : model_(model),
        calls_(device, hooks),
        step_(calls_.python("capture", {{"model", model}, {"hook", calls_.address()}}).get<int>()) {}
  ~PythonStep() override {
    try {
      call_python(module, "release", {{"model", model_}, {"step", step_}});
    } catch (const std::exception&) {  // its memory goes with the process
    }
  }
  void replay() override { calls_.python("replay", {{"model", model_}, {"step", step_}}); }
  // torch does not tell: what did not enter the graph shows by host functions that do not run and delays without effect.
  std::optional<std::size_t> operations() const override { return {}; }
  std::optional<std::size_t> host_functions() const override { return {}; }

 private:
  const int model_;
  HookCalls calls_;
  const int step_;
};

}  // namespace

bool is_python_model(const std::string& name) {
  return name.starts_with("python:") || name.find('/') != std::string::npos || name.ends_with(".json") ||
         std::filesystem::is_directory(name);
}

PythonModel::PythonModel(Device& device, const PythonModelOptions& options) : device_(device) {
  const Json loaded = call_python(module, "load",
                                  {{"model", options.model},
                                   {"device", options.device},
                                   {"dtype", options.dtype},
                                   {"random_weights", options.random_weights},
                                   {"stock", options.stock},
                                   {"layers_limit", options.layers_limit},
                                   {"overrides", options.overrides},
                                   {"batch", options.batch},
                                   {"context", options.context},
                                   {"seed", options.seed}});
  handle_ = loaded.at("model").get<int>();
  layers_ = loaded.at("layers").get<int>();
  name_ = loaded.at("name").get<std::string>();
  label_ = loaded.at("label").get<std::string>();
}

PythonModel::~PythonModel() {
  try {
    call_python(module, "unload", {{"model", handle_}});
  } catch (const std::exception&) {  // its memory goes with the process
  }
}

std::unique_ptr<CapturedStep> PythonModel::capture(StepHooks& hooks) {
  return std::make_unique<PythonStep>(handle_, device_, hooks);
}

}  // namespace slacktier
