#include "platforms/cpu/runner.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <exception>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier::cpu {
namespace {

const char* kind_name(OperationKind kind) {
  switch (kind) {
    case OperationKind::kernel:
      return "kernel";
    case OperationKind::compute:
      return "compute";
    case OperationKind::copy:
      return "copy";
    case OperationKind::fill:
      return "fill";
    case OperationKind::host_function:
      return "host function";
    case OperationKind::record:
      return "record";
    case OperationKind::wait:
      return "wait";
    case OperationKind::await:
      return "gate";
    case OperationKind::reset:
      return "reset";
    case OperationKind::post:
      return "post";
    case OperationKind::timestamp:
      return "timestamp";
    case OperationKind::wait_until:
      return "wait until";
    case OperationKind::replay:
      return "graph replay";
  }
  return "operation";
}

// The time that an operation takes is the difference of two of these: of the device's own work the CPU time of this thread,
// since a GPU does not stop when the host's threads want the cores; of the host's work, which they may keep waiting, that of
// the clock.
Nanos time_of(OperationKind kind) {
  if (kind != OperationKind::kernel && kind != OperationKind::copy && kind != OperationKind::fill)
    return monotonic_clock().now();
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<Nanos>(t.tv_sec) * kNanosPerSecond + t.tv_nsec;
}

}  // namespace

void DeviceState::fail(const std::string& what) noexcept {
  const std::lock_guard lock(failure_mutex_);
  if (!failed_.load(std::memory_order_relaxed)) failure_ = what;
  failed_.store(true, std::memory_order_seq_cst);
  for (const Runner* runner : runners_) runner->interrupt();
}

void DeviceState::throw_if_failed() const {
  if (!failed()) return;
  const std::lock_guard lock(failure_mutex_);
  throw DeviceError(failure_);
}

Runner::Runner(std::shared_ptr<DeviceState> device, std::string name) : device_(std::move(device)), name_(std::move(name)) {
  const std::lock_guard lock(device_->failure_mutex_);
  device_->runners_.push_back(this);
}

Runner::~Runner() {
  const std::lock_guard lock(device_->failure_mutex_);
  std::erase(device_->runners_, this);
}

void Runner::stop() noexcept {
  stopped_.store(true, std::memory_order_seq_cst);
  interrupt();
}

void Runner::interrupt() const noexcept {
  if (const auto* word = asleep_on_.load(std::memory_order_seq_cst)) futex_wake_all(word);
}

bool Runner::skipping() const noexcept {
  return device_->failed() || stopped_.load(std::memory_order_seq_cst) ||
         (replay_stop_ != nullptr && replay_stop_->load(std::memory_order_seq_cst));
}

void Runner::run(const Operation& operation, std::uint32_t sequence) noexcept {
  timeline_.not_before(operation.queued);
  // Records and replays look at skipping() themselves: others wait for what they signal.
  if (operation.kind == OperationKind::record) return operation.point->reach(sequence, timeline_.at());
  if (operation.kind != OperationKind::replay && skipping()) return;
  const auto failed = [&](const char* what) noexcept {
    try {
      const std::string kernel = operation.kernel_name == nullptr ? "" : fmt::format(" '{}'", *operation.kernel_name);
      device_->fail(fmt::format("cpu device, stream '{}': {}{} failed: {}", name_, kind_name(operation.kind), kernel, what));
    } catch (...) {
      device_->fail("cpu device");  // out of memory: fits the string's own storage
    }
  };
  try {
    if (operation.kind == OperationKind::wait) return wait(*operation.point, sequence);
    carry_out(operation);
  } catch (const std::exception& error) {
    failed(error.what());
  } catch (...) {
    failed("an exception that is no std::exception");
  }
}

void Runner::carry_out(const Operation& operation) {
  const Clock& clock = monotonic_clock();
  const Nanos begin = time_of(operation.kind);
  switch (operation.kind) {
    case OperationKind::compute:
      return clock.sleep_until(timeline_.advance(operation.duration));
    case OperationKind::await:
      return await(*operation.signal);
    case OperationKind::reset:
      return operation.signal->word.store(0, std::memory_order_release);
    case OperationKind::post:
      operation.post->word.store(1, std::memory_order_release);
      if (operation.post->bell != nullptr) operation.post->bell->ring();
      return;
    case OperationKind::timestamp:
      *static_cast<std::int64_t*>(operation.target) = timeline_.at();
      return;
    case OperationKind::wait_until:
      if (*operation.period <= 0) return;
      timeline_.not_before(*static_cast<const std::int64_t*>(operation.source) + *operation.period);
      return clock.sleep_until(timeline_.at());
    case OperationKind::replay:
      return operation.graph->replay(*this);
    case OperationKind::record:
    case OperationKind::wait:
      return;
    case OperationKind::kernel:
      operation.kernel(nullptr, operation.arguments.data());
      break;
    case OperationKind::host_function:
      operation.function(operation.target);
      break;
    case OperationKind::copy:
      if (operation.bytes != 0) std::memmove(operation.target, operation.source, operation.bytes);
      break;
    case OperationKind::fill:
      if (operation.bytes != 0) std::memset(operation.target, operation.value, operation.bytes);
      break;
  }
  timeline_.advance(time_of(operation.kind) - begin);
}

void Runner::await(Signal& signal) noexcept {
  bool slept = false;
  asleep_on_.store(&signal.word, std::memory_order_seq_cst);
  while (signal.word.load(std::memory_order_acquire) == 0 && !skipping()) {
    slept = true;
    futex_wait(signal.word, 0, monotonic_clock().now() + kLookAgain);
  }
  asleep_on_.store(nullptr, std::memory_order_seq_cst);
  // A thread that comes late may find open what the device would have waited for: then the publish itself dates the opening.
  timeline_.not_before(slept ? monotonic_clock().now() : signal.opened.load(std::memory_order_relaxed));
}

void Runner::wait(Point& point, std::uint32_t sequence) noexcept {
  bool slept = false;
  asleep_on_.store(&point.reached, std::memory_order_seq_cst);
  while (!point.has(sequence) && !skipping()) {
    slept = true;
    point.sleep(sequence, monotonic_clock().now() + kLookAgain);
  }
  asleep_on_.store(nullptr, std::memory_order_seq_cst);
  timeline_.not_before(slept ? monotonic_clock().now() : point.time.load(std::memory_order_relaxed));
}

}  // namespace slacktier::cpu
