#include "probe/attachment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include <fmt/format.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "probe/hold.hpp"

namespace slacktier {
namespace {

void* map(int file, std::size_t bytes, const std::filesystem::path& path) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const int error = errno;
  ::close(file);
  if (memory != MAP_FAILED) return memory;
  errno = error;
  throw_errno("mapping " + path.string());
}

}  // namespace

SharedFile SharedFile::create(const std::filesystem::path& path, std::size_t bytes) {
  // A probe that still has an earlier engine's file keeps that, and cannot take its steps for this one's.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw_errno("replacing " + path.string());
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) throw_errno("making " + path.string());
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) {
    const int error = errno;
    ::close(file);
    errno = error;
    throw_errno("making " + path.string());
  }
  SharedFile made;
  made.memory_ = map(file, bytes, path);
  made.bytes_ = bytes;
  return made;
}

SharedFile SharedFile::open(const std::filesystem::path& path, std::size_t bytes) {
  SharedFile opened;
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 && errno == ENOENT) return opened;
  if (file < 0) throw_errno("opening " + path.string());
  // Shorter: it is being made.
  if (::lseek(file, 0, SEEK_END) < static_cast<off_t>(bytes)) {
    ::close(file);
    return opened;
  }
  opened.memory_ = map(file, bytes, path);
  opened.bytes_ = bytes;
  return opened;
}

SharedFile& SharedFile::operator=(SharedFile&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedFile::~SharedFile() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

std::filesystem::path control_path(const std::filesystem::path& directory, int rank) {
  return directory / fmt::format("control.{}", rank);
}
std::filesystem::path samples_path(const std::filesystem::path& directory, int rank) {
  return directory / fmt::format("samples.{}", rank);
}

struct Attachment::Step {
  Attachment* owner = nullptr;
  std::int32_t batch = 0, decode = 0;
  std::int32_t lost = 0;  // layers that did not wait for their hook when the step was queued
  // Of the run in progress.
  std::uint64_t order = 0;
  std::int64_t layer = -1;
  Nanos delay = 0, valid_until = 0, began = 0;
  std::atomic<std::int32_t> hooks{0};
};

struct Attachment::Hook {
  Step* step;
  int layer;
};

Attachment::Attachment(const std::filesystem::path& directory, int rank, int layers, Nanos watchdog)
    : layers_(layers), watchdog_(watchdog), own_(std::make_unique<Step>()) {
  if (layers < 1) throw UsageError("an engine without layers cannot be attached");
  if (rank < 0) throw UsageError(fmt::format("rank {}: from 0 on", rank));
  std::filesystem::create_directories(directory);
  control_ = SharedFile::create(control_path(directory, rank), sizeof(AttachedControl));
  samples_ = SharedFile::create(samples_path(directory, rank), sizeof(AttachedSamples));
  own_->owner = this;
  samples_in(samples_).layers = layers;
  samples_in(samples_).magic.store(attachment_magic, std::memory_order_release);
}

Attachment::~Attachment() = default;

void Attachment::latch(Step& step) noexcept {
  const AttachedControl& control = control_in(control_);
  const std::uint64_t order = control.order.load(std::memory_order_acquire);
  step.layer = control.layer.load(std::memory_order_relaxed);
  step.delay = control.delay_ns.load(std::memory_order_relaxed);
  step.valid_until = control.valid_until.load(std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  const bool torn = order % 2 == 1 || control.order.load(std::memory_order_relaxed) != order;
  step.order = torn ? 0 : order;
  if (torn) step.delay = 0;
  step.hooks.store(0, std::memory_order_relaxed);
  step.began = monotonic_clock().now();
}

void Attachment::hold(Step& step, int layer) noexcept {
  if (step.layer == layer && step.delay > 0)
    hold_until(std::min({step.began + step.delay, monotonic_clock().now() + watchdog_, step.valid_until}));
  step.hooks.fetch_add(1, std::memory_order_relaxed);
}

void Attachment::finish(Step& step) noexcept {
  const Nanos took = monotonic_clock().now() - step.began;
  AttachedSamples& samples = samples_in(samples_);
  const std::uint64_t n = samples.count.load(std::memory_order_relaxed);
  samples.ring[n % attachment_samples] = {
      step.order, took, step.batch, step.decode, step.hooks.load(std::memory_order_relaxed) - step.lost, layers_};
  samples.count.store(n + 1, std::memory_order_release);
}

void Attachment::begin(int batch, bool decode) {
  own_->batch = batch;
  own_->decode = decode;
  latch(*own_);
}
void Attachment::before_layer(int layer) { hold(*own_, layer); }
void Attachment::end() { finish(*own_); }

void Attachment::queue_begin(Device& device, Stream& main, int batch, bool decode) {
  Step& step = steps_.emplace_back();
  step.owner = this;
  step.batch = batch;
  step.decode = decode;
  step.lost = layers_;
  main.host_function(
      [](void* user) {
        auto& mine = *static_cast<Step*>(user);
        mine.owner->latch(mine);
      },
      &step);
  queued_ = 1;
  if (!side_) side_ = device.create_stream("attached");
  fork_ = device.create_event();
  main.record(*fork_);
  side_->wait(*fork_);
  for (int layer = 0; layer < layers_; ++layer) {
    Hook& hook = hooks_.emplace_back(Hook{&step, layer});
    side_->host_function(
        [](void* user) {
          const auto& mine = *static_cast<Hook*>(user);
          mine.step->owner->hold(*mine.step, mine.layer);
        },
        &hook);
    auto& event = released_[layer] = device.create_event();
    side_->record(*event);
  }
}

void Attachment::queue_layer(Stream& main, int layer) {
  const auto event = released_.find(layer);
  if (event == released_.end()) throw UsageError(fmt::format("layer {}: the step has {} layers", layer, layers_));
  main.wait(*event->second);
  if (steps_.back().lost > 0) --steps_.back().lost;
  ++queued_;
}

void Attachment::queue_end(Stream& main) {
  if (steps_.empty()) throw UsageError("a step ends that did not begin");
  // The side stream joins here even if the model left layers out.
  main.wait(*released_.at(layers_ - 1));
  main.host_function(
      [](void* user) {
        auto& mine = *static_cast<Step*>(user);
        mine.owner->finish(mine);
      },
      &steps_.back());
  ++queued_;
}

}  // namespace slacktier
