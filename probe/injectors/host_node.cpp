#include <cstdint>
#include <deque>
#include <map>

#include "probe/injectors/injectors.hpp"

namespace slacktier {
namespace {

class HostNodeInjector final : public Injector {
 public:
  explicit HostNodeInjector(Device& device) : device_(device), side_(device.create_stream("host-nodes")) {}

  void begin(Stream& main, ControlBlock& control) override {
    fork_ = device_.create_event();
    main.record(*fork_);
    side_->wait(*fork_);
    released_.clear();
    for (const int layer : control.hooked()) {
      const Node& node = nodes_.emplace_back(Node{&control, layer});
      side_->host_function(
          [](void* user) {
            const auto& mine = *static_cast<const Node*>(user);
            mine.control->hold(mine.layer);
          },
          const_cast<Node*>(&node));
      auto& event = released_[layer] = device_.create_event();
      side_->record(*event);
    }
  }

  void before_layer(Stream& main, ControlBlock&, int layer) override { main.wait(*released_.at(layer)); }

  // The last hooked layer has waited for all that the side stream holds.
  void end(Stream&) override {}

  std::size_t operations(std::size_t hooks) const override { return hooks; }
  std::size_t host_functions(std::size_t hooks) const override { return hooks; }

 private:
  struct Node {
    ControlBlock* control;
    int layer;
  };

  Device& device_;
  const std::unique_ptr<Stream> side_;
  std::unique_ptr<Event> fork_;
  std::map<int, std::unique_ptr<Event>> released_;
  std::deque<Node> nodes_;  // of all captures: graphs point to them
};

}  // namespace

std::unique_ptr<Injector> make_host_node_injector(Device& device) { return std::make_unique<HostNodeInjector>(device); }

}  // namespace slacktier
