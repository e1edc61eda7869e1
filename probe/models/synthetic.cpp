#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"
#include "probe/model.hpp"

namespace slacktier {
namespace {

class SyntheticStep final : public CapturedStep {
 public:
  SyntheticStep(std::unique_ptr<Graph> graph, Stream& main) : graph_(std::move(graph)), main_(main) {}
  void replay() override {
    graph_->launch(main_);
    main_.synchronize();
  }
  std::optional<std::size_t> operations() const override { return graph_->operations(); }
  std::optional<std::size_t> host_functions() const override { return graph_->host_functions(); }

 private:
  const std::unique_ptr<Graph> graph_;
  Stream& main_;
};

}  // namespace

SyntheticModel::SyntheticModel(Device& device, std::vector<Nanos> layer_times, std::string label)
    : device_(device),
      layer_times_(std::move(layer_times)),
      label_(std::move(label)),
      main_(device.create_stream("synthetic")) {
  if (layer_times_.empty()) throw UsageError("a synthetic model needs a layer at least");
  if (*std::min_element(layer_times_.begin(), layer_times_.end()) < 0)
    throw UsageError("a synthetic model's layer cannot take negative time");
}

std::unique_ptr<CapturedStep> SyntheticModel::capture(StepHooks& hooks) {
  device_.begin_capture(*main_);
  hooks.begin(*main_);
  for (int k = 0; k < layers(); ++k) {
    hooks.before_layer(*main_, k);
    main_->compute(layer_times_[static_cast<std::size_t>(k)]);
  }
  hooks.end(*main_);
  return std::make_unique<SyntheticStep>(device_.end_capture(*main_), *main_);
}

}  // namespace slacktier
