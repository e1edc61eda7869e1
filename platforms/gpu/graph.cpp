#include "platforms/gpu/graph.hpp"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/gpu/gates.hpp"

namespace slacktier::gpu {

GpuGraph::GpuGraph(std::shared_ptr<DeviceState> device, rt::Graph graph, Signals signals, rt::Stream upload_on)
    : device_(std::move(device)), graph_(graph), done_(device_), signals_(std::move(signals)) {
  try {
    count_nodes();
    device_->check(rt::instantiate(&exec_, graph_), "instantiating a graph");
    // What the first replay would have to bring to the device, now.
    device_->check(rt::upload(exec_, upload_on), "uploading a graph");
    device_->check(rt::StreamSynchronize(upload_on), "uploading a graph");
  } catch (...) {
    if (exec_ != nullptr) rt::GraphExecDestroy(exec_);
    rt::GraphDestroy(graph_);
    throw;
  }
}

GpuGraph::~GpuGraph() {
  // A replay in flight uses the nodes until it ends; its stream still knows what it waits for.
  const Clock& clock = monotonic_clock();
  while (launched_ && rt::EventQuery(done_.native) == rt::not_ready) {
    rt::last_error();
    const std::lock_guard lock(device_->mutex);
    for (Signal* signal : signals_) force_open(*signal);
    clock.sleep_until(clock.now() + 100'000);
  }
  rt::GraphExecDestroy(exec_);
  rt::GraphDestroy(graph_);
}

void GpuGraph::count_nodes() {
  std::size_t n = 0;
  device_->check(rt::GraphGetNodes(graph_, nullptr, &n), "counting a graph's nodes");
  std::vector<rt::GraphNode> nodes(n);
  if (n > 0) device_->check(rt::GraphGetNodes(graph_, nodes.data(), &n), "counting a graph's nodes");
  for (const rt::GraphNode node : nodes) {
    rt::GraphNodeType type;
    // Runtimes do not name every node that drivers have: stream memory operations may be an error here.
    if (rt::GraphNodeGetType(node, &type) != rt::success) {
      rt::last_error();
      ++operations_;
      continue;
    }
    operations_ += type != SLACKTIER_RT(GraphNodeTypeEmpty);
    host_functions_ += type == SLACKTIER_RT(GraphNodeTypeHost);
  }
}

void GpuGraph::launch(Stream& stream) {
  auto* own = dynamic_cast<GpuStream*>(&stream);
  if (own == nullptr || own->device() != device_)
    throw UsageError(fmt::format("{}: graph launched on a stream of another device", device_->name));
  device_->enter();
  if (own->capturing())
    throw UsageError(
        fmt::format("{}: graph launched on stream '{}' during its capture; graphs do not nest", device_->name, own->name()));
  if (launched_ && rt::EventQuery(done_.native) == rt::not_ready) {
    rt::last_error();
    throw UsageError(
        fmt::format("{}: graph launched on stream '{}' while its previous replay is in flight; synchronize first",
                    device_->name, own->name()));
  }
  own->will_await(signals_);
  device_->check(rt::GraphLaunch(exec_, own->native()), "launching a graph");
  device_->check(rt::EventRecord(done_.native, own->native()), "launching a graph");
  launched_ = true;
}

}  // namespace slacktier::gpu
