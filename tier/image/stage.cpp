// Staging: headers first, then the pages in parallel, the progress saved every few seconds.
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <map>
#include <mutex>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "platforms/memory.hpp"
#include "tier/block_device.hpp"
#include "tier/image/chunks.hpp"
#include "tier/image/disk_file.hpp"
#include "tier/image/header_area.hpp"
#include "tier/image/same.hpp"
#include "tier/image/workers.hpp"

namespace slacktier {

namespace {

constexpr Nanos save_interval = 5'000'000'000;  // between records of progress: what an unclean end costs at most

struct Disk {
  DiskFile file;
  std::uint64_t sequence = 0;  // of its newest header slot
};

// Deals chunks to workers in order and knows up to where all are written.
class Dealer {
 public:
  Dealer(std::uint64_t first, std::uint64_t count, std::size_t workers) : next_(first), count_(count), at_(workers, count) {}

  // The worker's next chunk, or `count` when none is left; its last one is written now.
  std::uint64_t take(std::size_t worker) {
    const std::lock_guard lock(mutex_);
    at_[worker] = stopped_ || next_ == count_ ? count_ : next_++;
    return at_[worker];
  }
  // The worker's chunk will not be written; nobody gets another.
  void fail(std::size_t worker) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    failed_ = std::min(failed_, at_[worker]);
    at_[worker] = count_;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  // Chunks before this one are written.
  std::uint64_t written() {
    const std::lock_guard lock(mutex_);
    return std::min({next_, failed_, *std::min_element(at_.begin(), at_.end())});
  }

 private:
  std::mutex mutex_;
  std::uint64_t next_, count_;
  std::uint64_t failed_ = UINT64_MAX;
  bool stopped_ = false;
  std::vector<std::uint64_t> at_;
};

std::uint64_t new_nonce() {
  std::uint64_t nonce = 0;
  if (::getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) throw_errno("getrandom");
  return nonce;
}

void save_header(std::vector<Disk>& disks, ImageHeader header) {
  for (std::size_t d = 0; d < disks.size(); ++d) {
    header.disk = static_cast<std::uint32_t>(d);
    const std::uint64_t sequence = ++disks[d].sequence;
    disks[d].file.write_synced(encode_header(header, sequence), sequence % 2 * header_slot_bytes);
  }
}

// Opens the disks, makes sure that each is free or holds this very image, and takes over what is staged: nonce, staged_bytes
// and complete of `header`.
void open_disks(const StageOptions& options, ImageHeader& header, std::vector<Disk>& disks) {
  bool all_there = true;
  std::uint64_t staged = UINT64_MAX;
  std::size_t complete = 0;
  for (std::size_t d = 0; d < options.disks.size(); ++d) {
    guard_device(options.disks[d], options.serials, options.overwrite_filesystem);
    Disk disk{DiskFile::for_writing(options.disks[d]), 0};
    const DiskFile& file = disk.file;
    const HeaderArea area = decode_header_area(file.read_area(), file.path());
    if (file.block_device()) {
      if (file.bytes() < header.disk_bytes()) {
        throw EnvironmentError(fmt::format("{}: the image needs {} bytes on it, it has {}; use --size to scale the image",
                                           file.path(), header.disk_bytes(), file.bytes()));
      }
    } else if (area.state == AreaState::foreign && file.bytes() > 0) {
      throw UsageError(file.path() + ": is a file but no image; it is not overwritten: remove it or choose another name");
    }
    disk.sequence = area.sequence;
    if (area.state == AreaState::damaged) {
      if (!file.block_device()) throw UsageError(fmt::format("{}: {}; discard it first", file.path(), area.problem));
      all_there = false;
    } else if (area.state == AreaState::foreign) {
      all_there = false;
    } else {
      const std::string difference = first_difference(area.header, header);
      if (!difference.empty() || area.header.disk != d) {
        throw UsageError(
            fmt::format("{}: holds another image ({}); discard it first, or choose another name", file.path(),
                        difference.empty() ? fmt::format("it is disk {}, not {}", area.header.disk, d) : difference));
      }
      if (header.nonce == 0) header.nonce = area.header.nonce;
      all_there = all_there && area.header.nonce == header.nonce && file.bytes() >= header.disk_bytes();
      staged = std::min(staged, area.header.staged_bytes);
      complete += area.header.complete;
    }
    disks.push_back(std::move(disk));
  }
  header.complete = all_there && complete == disks.size();
  header.staged_bytes = all_there ? staged : 0;
  if (!all_there) header.nonce = new_nonce();
}

// Frees what a failed start created, so that nothing is left behind.
void remove_created(std::vector<Disk>& disks) {
  for (const Disk& disk : disks) {
    if (disk.file.created()) ::unlink(disk.file.path().c_str());
  }
}

void require_space(const std::vector<Disk>& disks, const ImageHeader& header) {
  struct FileSystem {
    std::uint64_t needed = 0, free = 0;
    std::vector<std::string> paths;
  };
  std::map<dev_t, FileSystem> systems;  // several files may share one
  for (const Disk& disk : disks) {
    if (disk.file.block_device()) continue;
    FileSystem& system = systems[disk.file.number()];
    system.needed += header.disk_bytes() - std::min(header.disk_bytes(), disk.file.allocated_bytes());
    system.free = disk.file.free_bytes();
    system.paths.push_back(disk.file.path());
  }
  for (const auto& [number, system] : systems) {
    if (system.needed > system.free) {
      throw EnvironmentError(
          fmt::format("{}: staging needs {} more bytes, its file system has {} free; free space, or scale the "
                      "image with --size",
                      fmt::join(system.paths, ", "), system.needed, system.free));
    }
  }
}

// Headers on the disks and all their space claimed, before the first page is made.
void claim_disks(std::vector<Disk>& disks, const StageOptions& options, const ImageHeader& header) {
  require_space(disks, header);
  for (const Disk& disk : disks) {
    if (disk.file.block_device() && options.overwrite_filesystem) wipe_signatures(disk.file.descriptor(), disk.file.path());
  }
  save_header(disks, header);
  for (const Disk& disk : disks) {
    if (disk.file.block_device()) continue;
    try {
      disk.file.allocate(header.disk_bytes());
    } catch (const std::system_error& error) {
      throw EnvironmentError(
          fmt::format("{}: {} bytes cannot be had ({}; {} are free); free space or raise the limit (ulimit -f), "
                      "or scale the image with --size",
                      disk.file.path(), header.disk_bytes(), error.code().message(), disk.file.free_bytes()));
    }
  }
}

void write_chunks(const PageMaker& maker, const Chunks& chunks, const std::vector<Disk>& disks, Dealer& dealer,
                  std::size_t worker) {
  try {
    const HostMemory memory(image_chunk_bytes);
    const std::span buffer(static_cast<std::byte*>(memory.data()), image_chunk_bytes);
    for (std::uint64_t index; (index = dealer.take(worker)) < chunks.count();) {
      const Chunk chunk = chunks.chunk(index);
      maker.make(chunk, buffer);
      disks[chunk.disk].file.bulk_write(buffer.first(chunk.bytes), chunk.offset);
    }
  } catch (...) {
    dealer.fail(worker);
    throw;
  }
}

// The message of a system error without the text of its code, which std::system_error appends again.
std::string bare_message(const std::system_error& error) {
  std::string message = error.what();
  const std::string tail = ": " + error.code().message();
  if (message.ends_with(tail)) message.resize(message.size() - tail.size());
  return message;
}

}  // namespace

StageReport stage_image(const TableSpec& spec, const StageOptions& options) {
  ImageHeader header = plan_image(spec, options);
  std::vector<Disk> disks;
  try {
    open_disks(options, header, disks);
    if (!header.complete) claim_disks(disks, options, header);
  } catch (...) {
    remove_created(disks);
    throw;
  }
  const bool complete = header.complete;
  const Chunks chunks(header);
  StageReport report;
  report.bytes = header.page_bytes();
  for (Disk& disk : disks) {
    disk.file.open_bulk(true);
    if (!disk.file.direct()) report.buffered.push_back(disk.file.path());
  }
  report.direct = report.buffered.empty();
  if (complete) return report;

  const Clock& clock = monotonic_clock();
  const Nanos start = clock.now();
  const std::uint64_t first = chunks.chunks_within(header.staged_bytes), resumed = chunks.bytes_before(first);
  const int wanted = options.threads > 0 ? options.threads : default_workers();
  const auto workers =
      static_cast<std::size_t>(std::clamp<std::uint64_t>(chunks.count() - first, 1, static_cast<std::uint64_t>(wanted)));
  const auto rows = options.rows ? options.rows : generated_table(spec, options.seed);
  const PageMaker maker(spec, header, *rows);
  Dealer dealer(first, chunks.count(), workers);
  const auto save = [&] {
    const std::uint64_t written = dealer.written();
    for (const Disk& disk : disks) disk.file.sync();  // pages before the word that they are there
    header.staged_bytes = chunks.bytes_before(written);
    header.complete = written == chunks.count();
    save_header(disks, header);
  };
  Nanos next_save = start + save_interval;
  const auto look = [&] {
    if (options.progress) options.progress(chunks.bytes_before(dealer.written()), report.bytes);
    if (clock.now() < next_save) return;
    save();
    next_save = clock.now() + save_interval;
  };
  std::exception_ptr failure;
  try {
    run_workers(
        workers, "stage", [&](std::size_t worker) { write_chunks(maker, chunks, disks, dealer, worker); }, look,
        [&] { dealer.stop(); });
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    save();
  } catch (...) {
    if (!failure) failure = std::current_exception();
  }
  report.written = header.staged_bytes - resumed;
  report.seconds = static_cast<double>(clock.now() - start) * 1e-9;
  if (failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::system_error& error) {
      throw std::system_error(error.code(), fmt::format("{} of {} bytes are staged, stage again to resume; {}",
                                                        header.staged_bytes, report.bytes, bare_message(error)));
    }
  }
  return report;
}

}  // namespace slacktier
