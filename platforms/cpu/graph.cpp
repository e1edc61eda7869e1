#include "platforms/cpu/graph.hpp"

#include <algorithm>
#include <cstdint>
#include <set>

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "platforms/futex.hpp"

namespace slacktier::cpu {
namespace {

constexpr std::uint32_t kIdle = 0;
constexpr std::uint32_t kQueued = 1;
constexpr std::uint32_t kRunning = 2;
constexpr std::uint32_t kClosed = 4;  // added to one of the above

}  // namespace

GraphBody::GraphBody(std::shared_ptr<DeviceState> device, std::vector<Capture::Branch> branches)
    : device_(std::move(device)), state_(kIdle) {
  std::set<const Point*> awaited;
  for (const Capture::Branch& branch : branches) {
    for (const Operation& operation : branch.operations) {
      if (operation.kind == OperationKind::wait) awaited.insert(operation.point.get());
      if (!is_edge(operation.kind)) ++operations_;
      if (operation.kind == OperationKind::host_function) ++host_functions_;
    }
  }
  for (std::size_t i = 0; i < branches.size(); ++i) {
    std::vector<Operation>& list = branches[i].operations;
    std::erase_if(list, [&](const Operation& operation) {
      return operation.kind == OperationKind::record && awaited.count(operation.point.get()) == 0;
    });
    if (i == 0) {
      origin_ = std::move(list);
    } else if (branches[i].work != 0 || std::any_of(list.begin(), list.end(), [](const Operation& operation) {
                 return operation.kind == OperationKind::record;
               })) {
      sides_.push_back(std::make_unique<Side>(device_, branches[i].name, std::move(list)));
    }
  }
  try {
    for (const auto& side : sides_) {
      side->runner.set_replay_stop(&stop_);
      side->thread = thread_executor().start(side->runner.name(), [this, s = side.get()] { work(*s); });
    }
  } catch (...) {
    close();
    throw;
  }
}

GraphBody::~GraphBody() { close(); }

bool GraphBody::take() noexcept {
  std::uint32_t expected = kIdle;
  return state_.compare_exchange_strong(expected, kQueued);
}

void GraphBody::give_back() noexcept { state_.fetch_and(kClosed); }

void GraphBody::replay(Runner& origin) {
  std::uint32_t expected = kQueued;
  if (!state_.compare_exchange_strong(expected, kRunning)) return;  // closed meanwhile
  const std::uint32_t sequence = ++sequence_;
  stop_.store(false);
  if (state_.load() != kRunning) stop_.store(true);  // closed between the two lines above
  origin.set_replay_stop(&stop_);
  for (const Operation& operation : origin_) {
    if (origin.skipping()) stop_replay();
    origin.run(operation, sequence);
  }
  // Branches are joined by events before this, except for what little they do after their last record.
  for (const auto& side : sides_) {
    while (!side->done.has(sequence)) {
      if (origin.skipping()) stop_replay();
      side->done.sleep(sequence, monotonic_clock().now() + kLookAgain);
    }
  }
  origin.set_replay_stop(nullptr);
  if (state_.fetch_and(kClosed) & kClosed) futex_wake_all(&state_);
}

void GraphBody::stop_replay() noexcept {
  if (stop_.exchange(true)) return;
  for (const auto& side : sides_) side->runner.interrupt();
}

void GraphBody::work(Side& side) noexcept {
  Point& fork = *side.operations.front().point;
  for (std::uint32_t sequence = 1;; ++sequence) {
    bool slept = false;
    while (!fork.has(sequence) && !ending_.load()) {
      slept = true;
      fork.sleep(sequence, -1);
    }
    if (ending_.load()) return;
    side.runner.timeline().not_before(slept ? monotonic_clock().now() : fork.time.load());
    for (std::size_t i = 1; i < side.operations.size(); ++i) side.runner.run(side.operations[i], sequence);
    side.done.reach(sequence, side.runner.timeline().at());
  }
}

void GraphBody::close() noexcept {
  std::uint32_t state = state_.fetch_or(kClosed);
  if ((state & ~kClosed) == kRunning) {
    stop_.store(true);
    for (const auto& side : sides_) side->runner.interrupt();
    while (((state = state_.load()) & ~kClosed) == kRunning) futex_wait(state_, state, -1);
  }
  if (ending_.exchange(true)) return;
  for (const auto& side : sides_) {
    if (side->thread == nullptr) continue;
    // No replay runs, so the thread sleeps at its fork, or is about to. A changed word wakes it in either case.
    Point& fork = *side->operations.front().point;
    fork.reach(fork.reached.load() + (1U << 30), 0);
    side->thread.reset();
  }
}

void CpuGraph::launch(Stream& stream) {
  auto* own = dynamic_cast<CpuStream*>(&stream);
  if (own == nullptr || own->device() != body_->device())
    throw UsageError("cpu device: graph launched on a stream of another device");
  if (!body_->take()) {
    throw UsageError(fmt::format(
        "cpu device: graph launched on stream '{}' while its previous replay is in flight; synchronize first", own->name()));
  }
  try {
    own->launch_graph(body_);
  } catch (...) {
    body_->give_back();
    throw;
  }
}

}  // namespace slacktier::cpu
