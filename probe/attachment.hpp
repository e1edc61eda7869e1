// What an engine of somebody else's and slacktier-probe share: in a directory, for each rank a control file that says which
// layer to delay and a sample file that says what each step took. Both are memory mapped; all times are of CLOCK_MONOTONIC,
// so both sides run on one host.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "platforms/device.hpp"

namespace slacktier {

// A memory-mapped file of one of the two kinds.
class SharedFile {
 public:
  // A new file of zeros, in the place of one that an earlier engine left. Throws std::system_error.
  static SharedFile create(const std::filesystem::path& path, std::size_t bytes);
  // An existing one; empty when there is none yet. Throws std::system_error.
  static SharedFile open(const std::filesystem::path& path, std::size_t bytes);
  SharedFile() = default;
  SharedFile(SharedFile&& other) noexcept : memory_(other.memory_), bytes_(other.bytes_) { other.memory_ = nullptr; }
  SharedFile& operator=(SharedFile&& other) noexcept;
  ~SharedFile();
  explicit operator bool() const { return memory_ != nullptr; }
  void* memory() const { return memory_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

inline constexpr std::uint64_t attachment_magic = 0x31544154'54414c53;  // the version is its last digit
inline constexpr std::size_t attachment_samples = 4096;                 // the file is a ring of so many

struct AttachedControl {
  // Odd while the probe writes the rest; what a step did carries the number that it began with.
  std::atomic<std::uint64_t> order;
  std::atomic<std::int64_t> layer, delay_ns;
  std::atomic<std::int64_t> valid_until;  // a probe that died leaves no delay behind
};
struct AttachedSample {
  std::uint64_t order;
  std::int64_t step_ns;
  std::int32_t batch;
  std::int32_t decode;         // 0: other work than decoding was in the step
  std::int32_t hooks, hooked;  // hooks that ran, and that should have
};
struct AttachedSamples {
  std::atomic<std::uint64_t> magic;
  std::int64_t layers;
  std::atomic<std::uint64_t> count;  // of all samples ever written
  AttachedSample ring[attachment_samples];
};
// A file's content: of one that control_path or samples_path names.
inline AttachedControl& control_in(const SharedFile& file) { return *static_cast<AttachedControl*>(file.memory()); }
inline AttachedSamples& samples_in(const SharedFile& file) { return *static_cast<AttachedSamples*>(file.memory()); }

std::filesystem::path control_path(const std::filesystem::path& directory, int rank);
std::filesystem::path samples_path(const std::filesystem::path& directory, int rank);

// One rank's side in the engine's process. Steps are queued (and so captured) on the engine's stream, or run on the calling
// thread; the hooks of a step are host functions, since what they do is read a word and, sometimes, wait.
class Attachment {
 public:
  // Makes both files; the directory, too. Throws std::system_error, UsageError.
  Attachment(const std::filesystem::path& directory, int rank, int layers, Nanos watchdog = 1'000'000'000);
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  // On the calling thread, in order: begin, each layer, end.
  void begin(int batch, bool decode);
  void before_layer(int layer);
  void end();

  // The same queued on `main`, whose device is `device`. A step that is captured belongs to its graph for good.
  void queue_begin(Device& device, Stream& main, int batch, bool decode);
  void queue_layer(Stream& main, int layer);
  void queue_end(Stream& main);
  // Host functions that the last queued step has; layers + 2 when all hooks entered it.
  int queued() const { return queued_; }
  int layers() const { return layers_; }

 private:
  struct Step;
  struct Hook;
  void latch(Step& step) noexcept;
  void hold(Step& step, int layer) noexcept;
  void finish(Step& step) noexcept;

  const int layers_;
  const Nanos watchdog_;
  SharedFile control_, samples_;
  std::unique_ptr<Step> own_;  // of steps on the calling thread
  std::deque<Step> steps_;     // of captures: graphs point to them
  std::deque<Hook> hooks_;
  std::unique_ptr<Stream> side_;
  std::unique_ptr<Event> fork_;
  std::map<int, std::unique_ptr<Event>> released_;
  int queued_ = 0;
};

}  // namespace slacktier
