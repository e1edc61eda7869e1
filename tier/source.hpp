// Page sources: where missing pages come from. A batch goes in; each page lands in its pool buffer, its stamp is compared,
// and the batch's completion is called once, on a thread of the source, when the last page is in or has failed.
#pragma once

#include <array>
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
#include "tier/remote_options.hpp"

namespace slacktier {

inline constexpr std::uint32_t max_disks = 64;  // of one image

struct PageRead {
  std::uint64_t page = 0;              // stored page of the segment (folded)
  std::uint32_t buffer = 0;            // pool buffer that receives it
  std::uint64_t records = whole_page;  // those that are wanted; a source may bring the rest of the page, too
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
  std::atomic<std::uint32_t> remaining{0};                    // shares of the batch still being read
  std::atomic<Nanos> submitted{0};                            // the first page's submission to the system
  std::array<std::atomic<std::uint32_t>, max_disks> taken{};  // pages of each disk that its threads have taken, in turns
  Nanos completed = 0;                                        // the last page's arrival
};

// Whether pool pages are registered with io_uring (fixed buffers): automatic registers where RLIMIT_MEMLOCK allows it and
// says in describe() when it does not; required throws instead.
enum class Registration { automatic, required, off };

// Sees each page when its bytes lie in the pool buffer and before they are checked, on a thread of the source, and may
// change them: what it damages, the source's own check must find.
class ArrivalTap {
 public:
  virtual ~ArrivalTap() = default;
  // `read` indexes batch.reads; `result` is the bytes that came, or -errno.
  virtual void arrived(const ReadBatch& batch, std::size_t read, std::byte* page, int& result) = 0;
};

struct SourceOptions {
  int threads = 1;               // I/O threads per disk
  bool verify_checksum = false;  // whole checksum of every page (checked mode), not only the stamp
  // Of uring: reads in flight per disk, divided among its threads. Deep enough for any NVMe disk; what is beyond a disk's
  // own queue waits in the kernel, which sorts it by place: layer 1's last pages then come behind layer 14's (four times as
  // many on a virtual disk: T1 12 ms instead of 9).
  std::uint32_t queue_depth = 128;
  Registration registration = Registration::automatic;
  std::vector<int> cpus;  // pins of the I/O threads, in turn; empty: free
  // Of uring: false reads through the page cache, which leaves nothing but the cost of software. For measurements of that.
  bool direct = true;
  // Of uring.
  bool register_files = true;
  bool poll_completions = false;  // the reader asks the disk, no interrupt comes: a core for each, where the driver can
  int poller_cpu = -1;            // a kernel thread on this CPU submits; -1: the readers do
  // Of sources that read through the page cache.
  bool drop_cache = false;  // what the cache holds of the image is dropped when the source is opened
  bool hints = true;        // all pages of a batch are announced (WILLNEED) before the first is waited for
  ArrivalTap* tap = nullptr;
  RemoteOptions remote;  // of sources that read from other nodes
};

// What the wrapper `delayed` adds to a batch.
struct LinkDelay {
  double latency_us = 0;
  double gb_per_s = 0;  // 10^9 bytes a second; 0: without limit
};

class PageSource {
 public:
  virtual ~PageSource() = default;  // waits for the reads in flight
  virtual void submit(ReadBatch& batch) = 0;
  // Names the mechanism in effect for reports: "uring O_DIRECT fixed-buffers", "pread buffered (fallback)", ...
  virtual std::string describe() const = 0;
  // Host bytes registered with the system by this source beside the pool.
  virtual std::size_t registered_bytes() const { return 0; }
  // Sets the delay of the outermost wrapper `delayed` for the batches submitted from now on; false where there is none.
  virtual bool set_delay(const LinkDelay&) { return false; }
  // What it has done or holds by now that its description cannot say: "page cache holds 12.5% of the image". May be empty.
  virtual std::string activity() const { return {}; }
  // The last failure of reads (fault io) in words that an errno has not: which server, what it or the device said. May be
  // empty.
  virtual std::string failure() const { return {}; }
};

// How a source is made: `header` describes the image and names its disks, `pool` receives its pages.
// Throws UsageError (unknown name, listing those there are), EnvironmentError (io_uring refused: by which policy; memlock
// too small: needed, limit and command), std::system_error (a disk that cannot be opened).
//
// `wrappers` go around it, outermost first, each as text: "delayed:latency_us=15,gb_per_s=12.5". They see what they wrap as
// a source and change its times, its load or its pages:
//   delayed  latency_us, gb_per_s, or link = 100g-15us | 25g-120us   pages arrive no earlier than over a first-in, first-out
//   link faulty   class, nth | probability, seed, late_ms   damaged, missing or late pages; class: see fault_classes(),
//   several with + shared   tenants, seed                   tenants - 1 others read as many other pages of the same disk and
//   segment
std::unique_ptr<PageSource> make_source(const std::string& name, const ImageHeader& header, const PagePool& pool,
                                        const SourceOptions& options, std::span<const std::string> wrappers = {});
std::vector<std::string> source_names();
std::vector<std::string> disk_source_names();  // those that read an image on disks
std::vector<std::string> wrapper_names();
std::vector<std::string> fault_classes();
// Throws UsageError naming wrapper, setting and what it may be.
void check_wrapper(const std::string& text);
// Whether a source reads through the page cache, so that drop_cache means something there.
bool uses_page_cache(const std::string& source);
// Whether a source reads from another node's memory: it is opened by SourceOptions::remote, its image by open_remote_image
// (tier/remote_image.hpp), and the header's paths are servers.
bool is_remote_source(const std::string& source);

}  // namespace slacktier
