// Page sources: where missing pages come from. A batch goes in; each page lands in its pool buffer, its stamp is compared,
// and the batch's completion is called once, on a thread of the source, when the last page is in or has failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platforms/clock.hpp"
#include "tier/image.hpp"
#include "tier/pages.hpp"
#include "tier/pool.hpp"

namespace slacktier {

struct PageRead {
  std::uint64_t page = 0;    // stored page of the segment (folded)
  std::uint32_t buffer = 0;  // pool buffer that receives it
};

// Owned by the caller and untouched by it from submit until `done` was called. `done` must not throw or block for long.
struct ReadBatch {
  std::span<const PageRead> reads;  // at least one
  std::span<PageFault> faults;      // one per read, written by the source: none, or what was wrong
  std::span<int> errors;            // one per read: errno of a failed read (fault io), else 0
  const ImageSegment* segment = nullptr;
  std::uint64_t epoch = 0;
  void (*done)(ReadBatch&) = nullptr;
  void* user = nullptr;
  // Written by the source.
  std::atomic<std::uint32_t> remaining{0};  // shares of the batch still being read
  std::atomic<Nanos> submitted{0};          // the first page's submission to the system
  Nanos completed = 0;                      // the last page's arrival
};

// Whether pool pages are registered with io_uring (fixed buffers): automatic registers where RLIMIT_MEMLOCK allows it and
// says in describe() when it does not; required throws instead.
enum class Registration { automatic, required, off };

struct SourceOptions {
  int threads = 1;               // I/O threads per disk
  bool verify_checksum = false;  // whole checksum of every page (checked mode), not only the stamp
  // Reads in flight per thread. Deep enough for any NVMe disk, shallow enough that a layer's last pages do not queue behind
  // the next layer's in the device (512 made layer 1 wait 10 to 15% longer on a virtual disk).
  std::uint32_t queue_depth = 128;
  Registration registration = Registration::automatic;
  std::vector<int> cpus;  // pins of the I/O threads, in turn; empty: free
};

class PageSource {
 public:
  virtual ~PageSource() = default;  // waits for the reads in flight
  virtual void submit(ReadBatch& batch) = 0;
  // Names the mechanism in effect for reports: "uring O_DIRECT fixed-buffers", "pread buffered (fallback)", ...
  virtual std::string describe() const = 0;
  // Host bytes registered with the system by this source beside the pool.
  virtual std::size_t registered_bytes() const { return 0; }
};

// How a source is made: `header` describes the image and names its disks, `pool` receives its pages.
// Throws UsageError (unknown name, listing those there are), EnvironmentError (io_uring refused: by which policy; memlock
// too small: needed, limit and command), std::system_error (a disk that cannot be opened).
std::unique_ptr<PageSource> make_source(const std::string& name, const ImageHeader& header, const PagePool& pool,
                                        const SourceOptions& options);
std::vector<std::string> source_names();

}  // namespace slacktier
