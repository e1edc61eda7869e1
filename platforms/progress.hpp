// How far a long job is, on stderr: a bar on a terminal, else a line every ten seconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "platforms/clock.hpp"

namespace slacktier {

enum class ProgressUnit { bytes, steps };

// Where the text goes and how. The default is this process's stderr.
struct ProgressOutput {
  bool terminal = false;
  int columns = 80;
  std::function<void(std::string_view)> write;  // empty: nothing is shown (-q)
  const Clock* clock = &monotonic_clock();
};

// stderr as it is; shows nothing when `quiet`.
ProgressOutput stderr_progress(bool quiet);

// "42%  3.1/7.4 GiB  812 MiB/s  ETA 5 s" for a job at `done` of `total` (0: unknown) that did `since_start` of it in
// `elapsed`.
std::string progress_text(std::uint64_t done, std::uint64_t total, std::uint64_t since_start, Nanos elapsed,
                          ProgressUnit unit);

// Any thread may advance it; drawing happens in the thread that advances, at most ten times a second (terminal).
class Progress {
 public:
  // `already`: how much an earlier run did; it counts as done but not in the rate.
  Progress(std::string label, std::uint64_t total, ProgressUnit unit, ProgressOutput output, std::uint64_t already = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t amount = 1);
  // Draws the last state and ends the line. The destructor does it, too.
  void finish();
  std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }

 private:
  void draw(Nanos now);

  const std::string label_;
  const std::uint64_t total_;
  const ProgressUnit unit_;
  const ProgressOutput output_;
  const std::uint64_t already_;
  const Nanos begin_;
  std::atomic<std::uint64_t> done_;
  std::atomic<Nanos> next_;
  std::mutex drawing_;
  bool drawn_ = false;
  bool finished_ = false;
};

// A callback for a job that tells done and total: shows them on stderr unless `quiet`, and throws Interrupted after Ctrl-C.
// What is done at its first call was done before.
std::function<void(std::uint64_t done, std::uint64_t total)> watch_progress(const std::string& label, ProgressUnit unit,
                                                                            bool quiet);

}  // namespace slacktier
