#include "platforms/cpu/capture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "platforms/error.hpp"

namespace slacktier::cpu {

std::shared_ptr<Capture> Capture::begin(CpuStream& origin) {
  auto capture = std::make_shared<Capture>();
  capture->self_ = capture;
  capture->branches_.push_back({&origin, origin.name(), {}, 0, {}});
  origin.capture = capture;
  origin.branch = 0;
  return capture;
}

Operation& Capture::add(std::size_t branch, OperationKind kind) {
  Branch& to = branches_[branch];
  if (!is_edge(kind)) ++to.work;
  Operation& operation = to.operations.emplace_back();
  operation.kind = kind;
  return operation;
}

void Capture::record(CpuStream& stream, CpuEvent& event) {
  const Branch& branch = branches_[stream.branch];
  event.point = std::make_shared<Point>();
  event.sequence = 0;
  event.capture = self_;
  event.captured = true;
  event.branch = stream.branch;
  event.before = branch.before;
  event.before.resize(std::max(event.before.size(), stream.branch + 1));
  event.before[stream.branch] = branch.work;
  add(stream.branch, OperationKind::record).point = event.point;
}

void Capture::wait(CpuStream& stream, CpuEvent& event) {
  const std::shared_ptr<Capture> from = event.capture.lock();
  if (!event.captured || from == nullptr) {
    throw UsageError(fmt::format("cpu device: stream '{}' waits for an event that was {}", stream.name(),
                                 event.captured ? "recorded in a capture which has ended; record it again"
                                                : "not recorded in its capture; record it after begin_capture"));
  }
  if (stream.capture != nullptr && stream.capture != from) {
    throw UsageError(fmt::format("cpu device: stream '{}' waits for an event of another capture", stream.name()));
  }
  if (stream.capture == nullptr) {
    stream.capture = from;
    stream.branch = from->branches_.size();
    from->branches_.push_back({&stream, stream.name(), {}, 0, {}});
  }
  if (event.branch == stream.branch) return;  // in order anyhow
  Branch& branch = from->branches_[stream.branch];
  branch.before.resize(std::max(branch.before.size(), event.before.size()));
  for (std::size_t i = 0; i < event.before.size(); ++i) branch.before[i] = std::max(branch.before[i], event.before[i]);
  from->add(stream.branch, OperationKind::wait).point = event.point;
}

std::vector<Capture::Branch> Capture::end() {
  release();
  if (!gone_.empty()) throw UsageError(fmt::format("cpu device: stream '{}' was destroyed during its capture", gone_));
  const Branch& origin = branches_.front();
  for (std::size_t i = 1; i < branches_.size(); ++i) {
    const std::size_t joined = i < origin.before.size() ? origin.before[i] : 0;
    if (joined >= branches_[i].work) continue;
    throw UsageError(
        fmt::format("cpu device: stream '{}' was not joined to '{}' before the capture's end: {} of its {} operations are "
                    "not waited for; record an event on it and let '{}' wait for that",
                    branches_[i].name, origin.name, branches_[i].work - joined, branches_[i].work, origin.name));
  }
  return std::move(branches_);
}

void Capture::abandon(CpuStream& gone) {
  const std::shared_ptr<Capture> keep = self_.lock();
  CpuStream* origin = branches_.front().stream;
  gone_ = gone.name();
  release();
  branches_.resize(1);
  // The origin keeps the capture, so that its end_capture can tell what happened.
  if (origin == &gone) {
    branches_.front().stream = nullptr;
  } else {
    origin->capture = keep;
  }
}

void Capture::release() {
  for (Branch& branch : branches_) {
    if (branch.stream != nullptr) branch.stream->capture.reset();
  }
}

}  // namespace slacktier::cpu
