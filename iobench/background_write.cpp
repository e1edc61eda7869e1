#include "iobench/background_write.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <random>
#include <system_error>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "platforms/filesystem.hpp"
#include "platforms/quantity.hpp"

namespace slacktier {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 20;

}  // namespace

BackgroundWrite::BackgroundWrite(const std::string& folder, double mb_per_s, std::uint64_t file_bytes)
    : folder_(folder), mb_per_s_(mb_per_s), file_bytes_(file_bytes) {
  // As much again must stay free, for others.
  if (const std::uint64_t free = read_path_facts(folder).free_bytes; free < 2 * file_bytes)
    throw EnvironmentError(
        fmt::format("--background-write: {} free in {}, it wants {}; free space or name another folder of "
                    "that disk with --background-folder",
                    bytes_text(free), folder, bytes_text(2 * file_bytes)));
  file_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_DIRECT | O_CLOEXEC, 0600);
  if (file_ < 0 && (errno == EINVAL || errno == EOPNOTSUPP || errno == EISDIR))
    throw EnvironmentError(fmt::format(
        "--background-write: the file system of {} takes no unnamed file with direct I/O; use a folder on ext4 or xfs",
        folder));
  if (file_ < 0) throw_errno("--background-write: a file in " + folder);
  try {
    task_ = thread_executor().start("write", [this] { run(); });
  } catch (...) {
    ::close(file_);
    throw;
  }
}

BackgroundWrite::~BackgroundWrite() {
  stop_.store(true, std::memory_order_release);
  stopped_.ring();
  if (task_) try {
      task_->join();
    } catch (const std::exception&) {  // stop() is what reports it
    }
  ::close(file_);
}

double BackgroundWrite::stop() {
  stop_.store(true, std::memory_order_release);
  stopped_.ring();
  task_->join();
  task_.reset();
  return seconds_ > 0 ? static_cast<double>(written_) / 1e6 / seconds_ : 0;
}

void BackgroundWrite::run() {
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, block_bytes), &std::free);
  if (!block) throw std::bad_alloc();
  std::mt19937_64 random(1);
  auto* const words = static_cast<std::uint64_t*>(block.get());
  std::generate(words, words + block_bytes / sizeof *words, std::ref(random));
  const Clock& clock = monotonic_clock();
  const auto each = static_cast<Nanos>(static_cast<double>(block_bytes) / mb_per_s_ * 1e3);
  const Nanos began = clock.now();
  std::uint64_t offset = 0;
  std::uint32_t seen = stopped_.count();
  // A disk that cannot keep the rate gets no burst later: the next block is due one interval after the last at the earliest.
  Nanos due = began;
  while (!stop_.load(std::memory_order_acquire)) {
    ssize_t written;
    do written = ::pwrite(file_, block.get(), block_bytes, static_cast<off_t>(offset));
    while (written < 0 && errno == EINTR);
    if (written < 0) throw_errno("--background-write: writing in " + folder_);
    written_ += static_cast<std::uint64_t>(written);
    offset = (offset + block_bytes) % file_bytes_;
    due = std::max(due + each, clock.now());
    seconds_ = static_cast<double>(std::max<Nanos>(clock.now() - began, 1)) / 1e9;
    if (const Nanos left = due - clock.now(); left > 0) seen = stopped_.wait(seen, left);
  }
  seconds_ = static_cast<double>(std::max<Nanos>(clock.now() - began, 1)) / 1e9;
}

}  // namespace slacktier
