#include "platforms/gpu/stream.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/gpu/gates.hpp"

namespace slacktier::gpu {

GpuEvent::GpuEvent(std::shared_ptr<DeviceState> owner) : device(std::move(owner)) {
  device->enter();
  device->check(rt::create_event(&native), "creating an event");
}

GpuEvent::~GpuEvent() { rt::EventDestroy(native); }

GpuStream::GpuStream(std::shared_ptr<DeviceState> device, const std::string& name)
    : device_(std::move(device)), name_(name) {
  device_->enter();
  device_->check(rt::create_stream(&native_), named("creation"));
  const std::lock_guard lock(device_->mutex);
  device_->streams.insert(this);
}

GpuStream::GpuStream(std::shared_ptr<DeviceState> device, const std::string& name, rt::Stream native)
    : device_(std::move(device)), name_(name), owned_(false), native_(native) {
  const std::lock_guard lock(device_->mutex);
  device_->streams.insert(this);
}

GpuStream::~GpuStream() {
  if (!owned_) {
    const std::lock_guard lock(device_->mutex);
    device_->streams.erase(this);
    return;
  }
  try {
    device_->enter();
  } catch (const std::exception&) {  // the device is lost; so is what the stream holds
  }
  if (capturing()) {
    rt::Graph graph = nullptr;
    rt::StreamEndCapture(native_, &graph);
    if (graph != nullptr) rt::GraphDestroy(graph);
    rt::last_error();
  }
  drain();
  {
    const std::lock_guard lock(device_->mutex);
    device_->streams.erase(this);
  }
  rt::StreamDestroy(native_);
}

std::string GpuStream::named(const char* what) const { return fmt::format("stream '{}': {}", name_, what); }

void GpuStream::drain() noexcept {
  const Clock& clock = monotonic_clock();
  while (!capturing() && rt::StreamQuery(native_) == rt::not_ready) {
    rt::last_error();
    {
      const std::lock_guard lock(device_->mutex);
      for (Signal* signal : signals_) force_open(*signal);
    }
    clock.sleep_until(clock.now() + 100'000);
  }
}

void GpuStream::will_await(const Signals& signals) {
  const std::lock_guard lock(device_->mutex);
  signals_.insert(signals.begin(), signals.end());
}

bool GpuStream::awaits_within(std::uintptr_t begin, std::uintptr_t end) const {
  const auto first = signals_.lower_bound(reinterpret_cast<Signal*>(begin));
  return first != signals_.end() && reinterpret_cast<std::uintptr_t>(*first) < end;
}

void GpuStream::forget_within(std::uintptr_t begin, std::uintptr_t end) {
  signals_.erase(signals_.lower_bound(reinterpret_cast<Signal*>(begin)),
                 signals_.lower_bound(reinterpret_cast<Signal*>(end)));
}

void GpuStream::launch(std::string_view name, const void* args, std::size_t bytes) {
  if (args == nullptr && bytes != 0)
    throw UsageError(fmt::format("{}: kernel '{}' launched with null arguments", device_->name, name));
  void (*run)(void*, const void*) = nullptr;
  {
    const std::lock_guard lock(device_->mutex);
    const auto kernel = device_->kernels.find(name);
    if (kernel == device_->kernels.end())
      throw UsageError(
          fmt::format("{}: unknown kernel '{}': load_module the image that brings it first", device_->name, name));
    run = kernel->second;
  }
  device_->enter();
  run(native_, args);
  device_->check(rt::last_error(), named("launching kernel '") + std::string(name) + "'");
}

void GpuStream::compute(Nanos duration) {
  if (duration < 0)
    throw UsageError(fmt::format("{}: compute for {} ns: the duration must not be negative", device_->name, duration));
  device_->enter();
  launch_work(native_, device_->work_args(duration));
  check(rt::last_error(), "compute");
}

void GpuStream::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes == 0) return;
  if (destination == nullptr || source == nullptr)
    throw UsageError(fmt::format("{}: copy with a null pointer", device_->name));
  device_->enter();
  check(rt::copy(destination, source, bytes, native_), "copy");
}

void GpuStream::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  if (bytes == 0) return;
  if (destination == nullptr) throw UsageError(fmt::format("{}: fill with a null pointer", device_->name));
  device_->enter();
  check(rt::MemsetAsync(destination, value, bytes, native_), "fill");
}

void GpuStream::host_function(void (*function)(void*), void* user) {
  if (function == nullptr) throw UsageError(fmt::format("{}: host_function with a null function", device_->name));
  device_->enter();
  check(rt::host_function(native_, function, user), "host function");
}

namespace {

GpuEvent& own_event(Event& event, const std::shared_ptr<DeviceState>& device) {
  auto* own = dynamic_cast<GpuEvent*>(&event);
  if (own == nullptr || own->device != device)
    throw UsageError(fmt::format("{}: this event belongs to another device", device->name));
  return *own;
}

}  // namespace

void GpuStream::record(Event& event) {
  GpuEvent& own = own_event(event, device_);
  device_->enter();
  own.captured = capturing();
  if (own.captured) check(rt::capture_id(native_, &own.capture), "looking for its capture");
  check(rt::EventRecord(own.native, native_), "recording an event");
}

void GpuStream::wait(Event& event) {
  GpuEvent& own = own_event(event, device_);
  device_->enter();
  // The runtime would take these as errors that spoil the capture.
  if (capturing()) {
    unsigned long long id = 0;
    check(rt::capture_id(native_, &id), "looking for its capture");
    if (!own.captured || own.capture != id)
      throw UsageError(
          fmt::format("{}: stream '{}' waits for an event that was not recorded in its capture; record it after "
                      "begin_capture",
                      device_->name, name_));
  }
  const rt::Error error = rt::StreamWaitEvent(native_, own.native, 0u);
  if (error != rt::success && own.captured && !capturing())
    throw UsageError(
        fmt::format("{}: stream '{}' waits for an event that was recorded in a capture which has ended; record "
                    "it again ({})",
                    device_->name, name_, rt::text(error)));
  check(error, "waiting for an event");
}

void GpuStream::await(Signal& signal) {
  auto* word = static_cast<std::uint32_t*>(device_->mapped(&signal, sizeof signal, "a signal"));
  device_->enter();
  {
    // Noted before the gate can close: whoever destroys the memory must find who waits there.
    unsigned long long id = 0;
    const bool in_capture = capturing();
    if (in_capture) check(rt::capture_id(native_, &id), "looking for its capture");
    const std::lock_guard lock(device_->mutex);
    (in_capture ? device_->captured[id] : signals_).insert(&signal);
  }
  check(enqueue_gate(device_->gate, native_, signal, word), "gate");
}

void GpuStream::reset(Signal& signal) {
  auto* word = static_cast<std::uint32_t*>(device_->mapped(&signal, sizeof signal, "a signal"));
  device_->enter();
  launch_write(native_, word, 0);
  check(rt::last_error(), "closing a signal");
}

void GpuStream::post(Post& post) {
  auto* word = static_cast<std::uint32_t*>(device_->mapped(&post, sizeof post, "a post"));
  device_->enter();
  check(enqueue_store(device_->gate, native_, word, 1), "post");
}

void GpuStream::timestamp(std::int64_t* at) {
  if (at == nullptr) throw UsageError(fmt::format("{}: timestamp with a null pointer", device_->name));
  auto* target = static_cast<std::int64_t*>(device_->mapped(at, sizeof *at, "a timestamp"));
  device_->enter();
  launch_timestamp(native_, target);
  check(rt::last_error(), "timestamp");
}

void GpuStream::wait_until(const std::int64_t* since, const std::int64_t* duration) {
  if (since == nullptr || duration == nullptr)
    throw UsageError(fmt::format("{}: wait_until with a null pointer", device_->name));
  auto* begin = static_cast<std::int64_t*>(device_->mapped(since, sizeof *since, "a timestamp"));
  auto* length = static_cast<std::int64_t*>(device_->mapped(duration, sizeof *duration, "a duration"));
  device_->enter();
  launch_wait_until(native_, begin, length);
  check(rt::last_error(), "wait until");
}

void GpuStream::synchronize() {
  device_->enter();
  if (capturing())
    throw UsageError(
        fmt::format("{}: synchronize on stream '{}' during its capture; end the capture first", device_->name, name_));
  check(rt::StreamSynchronize(native_), "its work");
}

}  // namespace slacktier::gpu
