// A captured graph of a GPU.
#pragma once

#include <memory>

#include "platforms/gpu/stream.hpp"

namespace slacktier::gpu {

class GpuGraph final : public Graph {
 public:
  // Takes `graph` over; `signals` are those that its gates wait for. Throws DeviceError.
  GpuGraph(std::shared_ptr<DeviceState> device, rt::Graph graph, Signals signals, rt::Stream upload_on);
  ~GpuGraph() override;

  void launch(Stream& stream) override;
  std::size_t host_functions() const override { return host_functions_; }
  std::size_t operations() const override { return operations_; }

 private:
  void count_nodes();

  const std::shared_ptr<DeviceState> device_;
  rt::Graph graph_ = nullptr;
  rt::GraphExec exec_ = nullptr;
  GpuEvent done_;  // of the latest replay
  bool launched_ = false;
  Signals signals_;
  std::size_t host_functions_ = 0, operations_ = 0;
};

}  // namespace slacktier::gpu
