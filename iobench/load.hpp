// One decode step's reads, as the tier issues them: for each rank a burst of random pages of each layer, in order, through
// the tier's own page sources; what is measured is when the last page of each layer has arrived.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "iobench/draw.hpp"
#include "platforms/device.hpp"
#include "platforms/executor.hpp"
#include "tier/image.hpp"
#include "tier/pool.hpp"
#include "tier/source.hpp"

namespace slacktier {

enum class SubmitOrder {
  layer_first,  // all pages of the first layer, then those of the next: what the tier does
  interleaved,  // layers in turn, 16 pages at a time
};
const char* to_string(SubmitOrder order);
SubmitOrder parse_submit_order(const std::string& text);  // throws UsageError

struct LoadOptions {
  // One image (its disks), or several that are dealt to the ranks: rank r reads images[r mod n].
  std::vector<ImageHeader> images;
  std::uint32_t ranks = 1;  // simultaneous bursts, each with threads, buffers and queue of its own
  std::string source = "uring";
  SourceOptions settings;
  std::vector<std::string> wrappers;  // around the source, see make_source
  SubmitOrder order = SubmitOrder::layer_first;
  std::uint64_t seed = 1;
  std::uint64_t span_pages = 0;  // only the first pages of each segment; 0: all
  bool stamped = true;           // false: pages carry no trailer of ours; only pages that did not come count as faults
};

// One layer of one batch, the slowest rank of each figure. Nanoseconds.
struct LayerTime {
  Nanos submit = 0;   // from the batch's begin until the layer's first page was handed to the system
  Nanos read = 0;     // T_k: from the first layer's first page until the layer's last one had arrived
  Nanos arrival = 0;  // from the batch's begin until the layer's last page had arrived
};

struct BatchTime {
  std::vector<LayerTime> layers;  // as asked for
  Nanos begin = 0;                // on the monotonic clock
  Nanos end = 0;                  // the last page of all
  std::uint64_t zero_pages = 0;   // of an unstamped device
};

class Load {
 public:
  // `most` is the largest batch to come; its layers are those of all batches. Throws UsageError (a layer that the image does
  // not hold), what make_source throws, and what allocating the pages throws.
  Load(LoadOptions options, const std::vector<LayerPages>& most);
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Draws batch number `batch`, waits until `start` (0: does not wait), reads it, and waits for its end. Throws DeviceError
  // naming layer, page, disk and fault when a page failed.
  BatchTime run(const std::vector<LayerPages>& pages, std::uint64_t batch, Nanos start = 0);

  // Reads `count` batches from number `first` on, back to back: each begins on the thread, and at the moment, that the one
  // before ended on, with pages drawn before. `keep` gets their times in order on the calling thread, soon after the end of
  // each; what it returns false for is the last that counts. Returns how many were kept. Throws as run does.
  std::uint32_t run_back_to_back(const std::vector<LayerPages>& pages, std::uint64_t first, std::uint32_t count,
                                 const std::function<bool(const BatchTime&)>& keep);

  std::string describe() const;  // of the sources in effect
  std::size_t registered_bytes() const;
  // Layers, pages and byte offsets on their disks of a batch, in reading order, for one rank: what --show-offsets prints.
  struct Offset {
    int layer = 0;
    std::uint64_t page = 0;
    std::string disk;
    std::uint64_t offset = 0;
  };
  std::vector<Offset> offsets(const std::vector<LayerPages>& pages, std::uint64_t batch, std::uint32_t rank) const;

 private:
  struct Rank;   // its image, pool and source
  struct Lane;   // one layer of one rank in one batch
  struct Batch;  // of all ranks

  const ImageSegment& segment_of(std::uint32_t rank, int layer) const;
  std::uint64_t pages_of(const ImageSegment& segment) const;
  void draw(Batch& batch, const std::vector<LayerPages>& pages, std::uint64_t number) const;
  void submit(Batch& batch);
  void ended();
  BatchTime times_of(const Batch& batch) const;  // throws DeviceError for a page that failed
  void check(const Rank& rank, const Lane& lane, std::uint64_t& zero_pages) const;

  LoadOptions options_;
  std::unique_ptr<Device> device_;
  Doorbell done_;
  // Batches by their count since the begin of a run; each has its place in batches_, in turn.
  std::mutex chain_;
  std::uint32_t drawn_ = 0, begun_ = 0, finished_ = 0;
  std::uint32_t wake_at_ = 0;  // finished batches of which the drawing thread wants to hear
  bool idle_ = true;           // no batch is being read
  std::vector<std::unique_ptr<Batch>> batches_;
  std::vector<std::unique_ptr<Rank>> ranks_;  // last: their sources end first
};

// The header of a device or file that is no image of ours, read as one segment per layer: `bytes` of it from its start.
ImageHeader unstamped_image(const std::vector<std::string>& disks, const std::vector<LayerPages>& layers,
                            std::uint32_t page_bytes, std::uint64_t bytes);

}  // namespace slacktier
