#include "platforms/cpu/stream.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "platforms/cpu/capture.hpp"
#include "platforms/error.hpp"

namespace slacktier::cpu {
namespace {

constexpr std::size_t kFirstSlots = 64;

CpuEvent& own_event(Event& event, const std::shared_ptr<DeviceState>& device) {
  auto* own = dynamic_cast<CpuEvent*>(&event);
  if (own == nullptr || own->device != device) throw UsageError("cpu device: this event belongs to another device");
  return *own;
}

}  // namespace

CpuStream::CpuStream(std::shared_ptr<DeviceState> device, const std::string& name)
    : device_(std::move(device)), name_(name), runner_(device_, name), ring_(kFirstSlots) {
  thread_ = thread_executor().start(name, [this] { work(); });
}

CpuStream::~CpuStream() {
  {
    const std::lock_guard lock(device_->mutex);
    if (capture != nullptr) capture->abandon(*this);
  }
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  more_.notify_all();
  runner_.stop();
  thread_.reset();
}

template <class Describe>
void CpuStream::add(OperationKind kind, const Describe& describe) {
  if (capture != nullptr) return describe(capture->add(branch, kind));
  {
    const std::lock_guard lock(mutex_);
    Operation& operation = grow_ring();
    operation.clear();
    operation.kind = kind;
    operation.queued = monotonic_clock().now();
    describe(operation);
    ++queued_;
  }
  more_.notify_one();
}

// The free slot at the end.
Operation& CpuStream::grow_ring() {
  if (queued_ == ring_.size()) {
    std::vector<Operation> larger(2 * ring_.size());
    for (std::size_t i = 0; i < queued_; ++i) larger[i] = std::move(ring_[(first_ + i) % ring_.size()]);
    ring_ = std::move(larger);
    first_ = 0;
  }
  return ring_[(first_ + queued_) % ring_.size()];
}

void CpuStream::work() {
  Operation current;
  std::unique_lock lock(mutex_);
  for (;;) {
    while (queued_ == 0 && !closing_) {
      running_ = false;
      idle_.notify_all();
      more_.wait(lock);
    }
    if (queued_ == 0) return;
    // The slot gets the memory of the last operation's arguments in exchange.
    std::swap(current, ring_[first_]);
    first_ = (first_ + 1) % ring_.size();
    --queued_;
    running_ = true;
    lock.unlock();
    runner_.run(current, current.sequence);
    current.clear();
    lock.lock();
  }
}

void CpuStream::synchronize() {
  {
    const std::lock_guard lock(device_->mutex);
    if (capture != nullptr) {
      throw UsageError(
          fmt::format("cpu device: synchronize on stream '{}' during its capture; end the capture first", name_));
    }
  }
  {
    std::unique_lock lock(mutex_);
    while (queued_ != 0 || running_) idle_.wait(lock);
  }
  device_->throw_if_failed();
}

void CpuStream::launch(std::string_view name, const void* args, std::size_t bytes) {
  if (args == nullptr && bytes != 0)
    throw UsageError(fmt::format("cpu device: kernel '{}' launched with null arguments", name));
  const std::lock_guard lock(device_->mutex);
  const auto kernel = device_->kernels.find(name);
  if (kernel == device_->kernels.end()) {
    throw UsageError(fmt::format("cpu device: unknown kernel '{}': load_module the image that brings it first", name));
  }
  add(OperationKind::kernel, [&](Operation& operation) {
    operation.kernel = kernel->second;
    operation.kernel_name = &kernel->first;
    operation.set_arguments(args, bytes);
  });
}

void CpuStream::compute(Nanos duration) {
  if (duration < 0)
    throw UsageError(fmt::format("cpu device: compute for {} ns: the duration must not be negative", duration));
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::compute, [&](Operation& operation) { operation.duration = duration; });
}

void CpuStream::copy(void* destination, const void* source, std::size_t bytes) {
  if (bytes != 0 && (destination == nullptr || source == nullptr)) throw UsageError("cpu device: copy with a null pointer");
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::copy, [&](Operation& operation) {
    operation.target = destination;
    operation.source = source;
    operation.bytes = bytes;
  });
}

void CpuStream::fill(void* destination, std::uint8_t value, std::size_t bytes) {
  if (bytes != 0 && destination == nullptr) throw UsageError("cpu device: fill with a null pointer");
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::fill, [&](Operation& operation) {
    operation.target = destination;
    operation.value = value;
    operation.bytes = bytes;
  });
}

void CpuStream::host_function(void (*function)(void*), void* user) {
  if (function == nullptr) throw UsageError("cpu device: host_function with a null function");
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::host_function, [&](Operation& operation) {
    operation.function = function;
    operation.target = user;
  });
}

void CpuStream::record(Event& event) {
  CpuEvent& own = own_event(event, device_);
  const std::lock_guard lock(device_->mutex);
  if (capture != nullptr) return capture->record(*this, own);
  // Who waits for an earlier record keeps that record's point; one that nobody holds any more is used again.
  if (own.point == nullptr || own.captured || own.point.use_count() > 1) {
    own.point = std::make_shared<Point>();
    own.sequence = 0;
  }
  own.captured = false;
  ++own.sequence;
  add(OperationKind::record, [&](Operation& operation) {
    operation.point = own.point;
    operation.sequence = own.sequence;
  });
}

void CpuStream::wait(Event& event) {
  CpuEvent& own = own_event(event, device_);
  const std::lock_guard lock(device_->mutex);
  if (capture != nullptr || own.captured) return Capture::wait(*this, own);
  if (own.point == nullptr) return;  // never recorded: nothing to wait for, as on GPU runtimes
  add(OperationKind::wait, [&](Operation& operation) {
    operation.point = own.point;
    operation.sequence = own.sequence;
  });
}

void CpuStream::await(Signal& signal) {
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::await, [&](Operation& operation) { operation.signal = &signal; });
}

void CpuStream::reset(Signal& signal) {
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::reset, [&](Operation& operation) { operation.signal = &signal; });
}

void CpuStream::post(Post& post) {
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::post, [&](Operation& operation) { operation.post = &post; });
}

void CpuStream::timestamp(std::int64_t* at) {
  if (at == nullptr) throw UsageError("cpu device: timestamp with a null pointer");
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::timestamp, [&](Operation& operation) { operation.target = at; });
}

void CpuStream::wait_until(const std::int64_t* since, const std::int64_t* duration) {
  if (since == nullptr || duration == nullptr) throw UsageError("cpu device: wait_until with a null pointer");
  const std::lock_guard lock(device_->mutex);
  add(OperationKind::wait_until, [&](Operation& operation) {
    operation.source = since;
    operation.period = duration;
  });
}

void CpuStream::launch_graph(std::shared_ptr<Replayable> graph) {
  const std::lock_guard lock(device_->mutex);
  if (capture != nullptr) {
    throw UsageError(fmt::format("cpu device: graph launched on stream '{}' during its capture; graphs do not nest", name_));
  }
  add(OperationKind::replay, [&](Operation& operation) { operation.graph = std::move(graph); });
}

}  // namespace slacktier::cpu
