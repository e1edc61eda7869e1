// Writes to the same disk while reads are measured: a log, a checkpoint, a neighbour that stages.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "platforms/executor.hpp"

namespace slacktier {

// Writes 1 MiB blocks of random bytes directly, at a rate, over and over into one file of its own, which it creates without
// a name in a folder: nothing that was there is written, and nothing is left behind, however the process ends.
class BackgroundWrite {
 public:
  // Rate in 10^6 bytes a second. Throws EnvironmentError when the folder's file system has no direct I/O, no unnamed files
  // or not enough space, std::system_error when it refuses the file.
  BackgroundWrite(const std::string& folder, double mb_per_s, std::uint64_t file_bytes = std::uint64_t{64} << 20);
  ~BackgroundWrite();
  BackgroundWrite(const BackgroundWrite&) = delete;
  BackgroundWrite& operator=(const BackgroundWrite&) = delete;

  // Ends it; the rate that was reached, in 10^6 bytes a second. Throws std::system_error when a write failed.
  double stop();

 private:
  void run();

  const std::string folder_;
  const double mb_per_s_;
  const std::uint64_t file_bytes_;
  int file_ = -1;
  std::atomic<bool> stop_{false};
  Doorbell stopped_;
  std::uint64_t written_ = 0;
  double seconds_ = 0;
  std::unique_ptr<Task> task_;
};

}  // namespace slacktier
