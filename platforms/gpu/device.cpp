#include "platforms/gpu/device.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/gpu/graph.hpp"
#include "platforms/gpu/memory.hpp"
#include "platforms/gpu/stream.hpp"

namespace slacktier::gpu {
namespace {

constexpr std::size_t stream_work_bytes = std::size_t{512} << 20;  // more than any cache holds

const char* to_string(Work work) {
  switch (work) {
    case Work::spin:
      return "spin";
    case Work::gemm:
      return "gemm";
    case Work::stream:
      return "stream";
  }
  return "unknown";
}

// Runs the work for a moment to see where its blocks go.
std::string describe_work(const std::shared_ptr<DeviceState>& state) {
  const std::string name = to_string(state->work);
  if (state->work == Work::spin) return name;
#if defined(SLACKTIER_GPU_HIP)
  return fmt::format("{}, a block for each of {} multiprocessors", name, state->multiprocessors);
#else
  const auto words = make_host_buffer(state, most_multiprocessors * sizeof(std::uint32_t));
  const GpuStream stream(state, "work");
  WorkArgs args = state->work_args(200'000);
  args.used = static_cast<std::uint32_t*>(words->device());
  state->enter();
  launch_work(stream.native(), args);
  state->check(rt::last_error(), "trying the work");
  state->check(rt::StreamSynchronize(stream.native()), "trying the work");
  const auto* used = static_cast<const std::uint32_t*>(words->host());
  return fmt::format("{} on {} of {} multiprocessors", name, std::count(used, used + most_multiprocessors, 1u),
                     state->multiprocessors);
#endif
}

}  // namespace

GpuDevice::GpuDevice(std::shared_ptr<DeviceState> state, std::string detail)
    : state_(std::move(state)),
      detail_(std::move(detail)),
      scratch_(make_device_buffer(state_, state_->work == Work::stream ? stream_work_bytes : 64)),
      clock_(state_) {
  state_->scratch = static_cast<const std::byte*>(scratch_->device());
  state_->scratch_bytes = scratch_->bytes();
  state_->sink = static_cast<float*>(scratch_->device());
  work_ = describe_work(state_);
}

GpuDevice::~GpuDevice() = default;

DeviceFacts GpuDevice::facts() const {
  DeviceFacts facts;
  facts.name = state_->product;
  facts.backend = rt::backend;
  facts.detail = fmt::format("{}; its clock read to {:.1f} us", detail_, static_cast<double>(clock_.uncertainty()) / 1e3);
  facts.gate = to_string(state_->gate);
  facts.work = work_;
  facts.gate_from = state_->gate_from;
  facts.architecture = state_->architecture;
  facts.pci = state_->pci;
  facts.unified_memory = state_->unified_memory;
  return facts;
}

std::unique_ptr<Stream> GpuDevice::create_stream(const std::string& name) {
  return std::make_unique<GpuStream>(state_, name);
}

std::unique_ptr<Stream> GpuDevice::adopt_stream(std::uintptr_t native, const std::string& name) {
  return std::make_unique<GpuStream>(state_, name, reinterpret_cast<rt::Stream>(native));
}

std::unique_ptr<Event> GpuDevice::create_event() { return std::make_unique<GpuEvent>(state_); }

GpuStream& GpuDevice::own_stream(Stream& stream) const {
  auto* own = dynamic_cast<GpuStream*>(&stream);
  if (own == nullptr || own->device() != state_)
    throw UsageError(fmt::format("{}: this stream belongs to another device", state_->name));
  return *own;
}

void GpuDevice::begin_capture(Stream& stream) {
  GpuStream& own = own_stream(stream);
  state_->enter();
  if (own.capturing())
    throw UsageError(
        fmt::format("{}: stream '{}' is being captured already; captures do not nest", state_->name, own.name()));
  state_->check(rt::begin_capture(own.native()), "beginning a capture");
}

std::unique_ptr<Graph> GpuDevice::end_capture(Stream& stream) {
  GpuStream& own = own_stream(stream);
  state_->enter();
  if (!own.capturing())
    throw UsageError(fmt::format("{}: end_capture on stream '{}', on which no capture began", state_->name, own.name()));
  unsigned long long id = 0;
  state_->check(rt::capture_id(own.native(), &id), "ending a capture");
  rt::Graph graph = nullptr;
  const rt::Error error = rt::StreamEndCapture(own.native(), &graph);
  Signals signals;
  {
    const std::lock_guard lock(state_->mutex);
    if (const auto found = state_->captured.find(id); found != state_->captured.end()) {
      signals = std::move(found->second);
      state_->captured.erase(found);
    }
  }
  if (error != rt::success) {
    rt::last_error();
    if (graph != nullptr) rt::GraphDestroy(graph);
    if (error == SLACKTIER_RT(ErrorStreamCaptureUnjoined))
      throw UsageError(
          fmt::format("{}: a stream was not joined to '{}' before the capture's end: record an event after its "
                      "last operation and let '{}' wait for that",
                      state_->name, own.name(), own.name()));
    throw UsageError(
        fmt::format("{}: the capture on stream '{}' cannot be ended: {}", state_->name, own.name(), rt::text(error)));
  }
  GpuStream upload(state_, "upload");
  return std::make_unique<GpuGraph>(state_, graph, std::move(signals), upload.native());
}

void GpuDevice::load_module(std::span<const ModuleImage> images) {
  const std::lock_guard lock(state_->mutex);
  bool found = false;
  for (const ModuleImage& image : images) {
    if (image.backend != rt::backend) continue;
    found = true;
    for (const KernelEntry& kernel : image.kernels) {
      if (kernel.run == nullptr)
        throw UsageError(fmt::format("{}: kernel '{}' of a module has no function", state_->name, kernel.name));
      const auto [entry, added] = state_->kernels.emplace(kernel.name, kernel.run);
      if (!added && entry->second != kernel.run)
        throw UsageError(fmt::format("{}: two modules bring different kernels named '{}'", state_->name, kernel.name));
    }
  }
  // A plug-in brought the kernels of every room when the device was opened.
  if (!found && state_->kernels.empty())
    throw UsageError(fmt::format("{}: the module has no image for backend '{}'", state_->name, rt::backend));
}

std::unique_ptr<Buffer> GpuDevice::allocate_device(std::size_t bytes) { return make_device_buffer(state_, bytes); }

std::unique_ptr<Buffer> GpuDevice::allocate_peer(const std::string& peer, std::size_t bytes) {
  return make_peer_buffer(state_, peer, bytes);
}

std::unique_ptr<Buffer> GpuDevice::allocate_host(std::size_t bytes) { return make_host_buffer(state_, bytes); }

}  // namespace slacktier::gpu
