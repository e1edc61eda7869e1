#include "iobench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t interleaved_pages = 16;

}  // namespace

const char* to_string(SubmitOrder order) { return order == SubmitOrder::layer_first ? "layer-first" : "interleaved"; }

SubmitOrder parse_submit_order(const std::string& text) {
  if (text == "layer-first") return SubmitOrder::layer_first;
  if (text == "interleaved") return SubmitOrder::interleaved;
  throw UsageError(fmt::format("--order {}: use layer-first or interleaved", text));
}

struct Load::Lane {
  int layer = 0;
  const ImageSegment* segment = nullptr;
  std::uint32_t first_buffer = 0;
  std::vector<std::uint64_t> pages;
  std::vector<PageRead> reads;
  std::vector<PageFault> faults;
  std::vector<int> errors;
  // One batch, or as many as the interleaved order cuts it into.
  std::vector<std::unique_ptr<ReadBatch>> parts;
  std::size_t used_parts = 0;
};

struct Load::Rank {
  const ImageHeader* image = nullptr;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<PageSource> source;  // after the pool it reads into
  std::vector<Lane> lanes;
};

Load::Load(LoadOptions options, const std::vector<LayerPages>& most)
    : options_(std::move(options)), device_(open_device("cpu")) {
  if (most.empty()) throw UsageError("a batch needs at least one layer");
  for (std::uint32_t r = 0; r < options_.ranks; ++r) {
    auto rank = std::make_unique<Rank>();
    rank->image = &options_.images[r % options_.images.size()];
    std::uint32_t buffers = 0;
    for (const LayerPages& wanted : most) buffers += wanted.pages;
    rank->pool = std::make_unique<PagePool>(*device_, rank->image->geometry.page_bytes, std::max(buffers, 1u));
    rank->source = make_source(options_.source, *rank->image, *rank->pool, options_.settings, options_.wrappers);
    buffers = 0;
    for (const LayerPages& wanted : most) {
      Lane lane;
      lane.layer = wanted.layer;
      lane.segment = &segment_of(r, wanted.layer);
      lane.first_buffer = buffers;
      lane.reads.reserve(wanted.pages);
      lane.faults.resize(wanted.pages);
      lane.errors.resize(wanted.pages);
      buffers += wanted.pages;
      rank->lanes.push_back(std::move(lane));
    }
    ranks_.push_back(std::move(rank));
  }
}

Load::~Load() = default;

// Images of several ranks give each burst a rank's segment in turn; an image of one rank gives all the same.
const ImageSegment& Load::segment_of(std::uint32_t rank, int layer) const {
  const ImageHeader& image = options_.images[rank % options_.images.size()];
  std::vector<const ImageSegment*> of_layer;
  for (const ImageSegment& segment : image.segments)
    if (segment.layer == layer) of_layer.push_back(&segment);
  if (of_layer.empty()) return image.segment(layer, 0);  // throws, naming the layers there are
  return *of_layer[rank / options_.images.size() % of_layer.size()];
}

std::uint64_t Load::pages_of(const ImageSegment& segment) const {
  return options_.span_pages ? std::min(options_.span_pages, segment.stored_pages) : segment.stored_pages;
}

BatchTime Load::run(const std::vector<LayerPages>& pages, std::uint64_t batch, Nanos start) {
  std::uint32_t parts = 0;
  const Nanos called_cpu = process_cpu_time();
  Nanos called = monotonic_clock().now();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    for (std::size_t l = 0; l < pages.size(); ++l) {
      Lane& lane = ranks_[r]->lanes[l];
      const std::uint32_t count = pages[l].pages;
      draw_pages(options_.seed, r, lane.layer, batch, pages_of(*lane.segment), count, lane.pages);
      lane.reads.clear();
      // Of each page one record, so that a source that brings records alone has something to bring.
      const std::uint32_t per_page = ranks_[r]->image->geometry.rows_per_page;
      for (std::uint32_t i = 0; i < count; ++i)
        lane.reads.push_back(
            {lane.pages[i], lane.first_buffer + i, record_bit(static_cast<std::uint32_t>(lane.pages[i] % per_page))});
      const std::uint32_t each = options_.order == SubmitOrder::interleaved ? interleaved_pages : std::max(count, 1u);
      lane.used_parts = (count + each - 1) / each;
      for (std::size_t p = 0; p < lane.used_parts; ++p) {
        if (lane.parts.size() <= p) lane.parts.push_back(std::make_unique<ReadBatch>());
        ReadBatch& part = *lane.parts[p];
        const std::size_t first = p * each, n = std::min<std::size_t>(each, count - first);
        part.reads = std::span<const PageRead>(lane.reads).subspan(first, n);
        part.faults = std::span(lane.faults).subspan(first, n);
        part.errors = std::span(lane.errors).subspan(first, n);
        part.segment = lane.segment;
        part.epoch = batch;
        part.user = this;
        part.done = [](ReadBatch& finished) {
          auto& load = *static_cast<Load*>(finished.user);
          if (load.pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) load.done_.ring();
        };
        ++parts;
      }
    }
  }
  BatchTime time;
  time.layers.resize(pages.size());
  pending_.store(parts, std::memory_order_release);
  std::uint32_t seen = done_.count();
  if (start > 0) {
    monotonic_clock().sleep_until(start);
    called = monotonic_clock().now();  // waiting for the schedule is no part of the cycle
  }
  const Nanos cpu = process_cpu_time();
  time.begin = monotonic_clock().now();
  std::size_t most_parts = 0;
  for (const auto& rank : ranks_)
    for (const Lane& lane : rank->lanes) most_parts = std::max(most_parts, lane.used_parts);
  if (options_.order == SubmitOrder::layer_first) {
    for (std::size_t l = 0; l < pages.size(); ++l)
      for (const auto& rank : ranks_)
        if (rank->lanes[l].used_parts > 0) rank->source->submit(*rank->lanes[l].parts[0]);
  } else {
    for (std::size_t p = 0; p < most_parts; ++p)
      for (std::size_t l = 0; l < pages.size(); ++l)
        for (const auto& rank : ranks_)
          if (p < rank->lanes[l].used_parts) rank->source->submit(*rank->lanes[l].parts[p]);
  }
  while (pending_.load(std::memory_order_acquire) > 0) seen = done_.wait(seen);
  time.cpu = process_cpu_time() - cpu;

  time.end = time.begin;
  for (const auto& rank : ranks_) {
    Nanos s = 0;  // the rank's first page
    for (const Lane& lane : rank->lanes)
      for (std::size_t p = 0; p < lane.used_parts; ++p)
        if (const Nanos at = lane.parts[p]->submitted.load(std::memory_order_relaxed); s == 0 || at < s) s = at;
    for (std::size_t l = 0; l < pages.size(); ++l) {
      const Lane& lane = rank->lanes[l];
      if (lane.used_parts == 0) continue;
      Nanos first = 0, last = 0;
      for (std::size_t p = 0; p < lane.used_parts; ++p) {
        const Nanos at = lane.parts[p]->submitted.load(std::memory_order_relaxed);
        if (first == 0 || at < first) first = at;
        last = std::max(last, lane.parts[p]->completed);
      }
      LayerTime& slowest = time.layers[l];
      slowest.submit = std::max(slowest.submit, first - time.begin);
      slowest.read = std::max(slowest.read, last - s);
      slowest.arrival = std::max(slowest.arrival, last - time.begin);
      time.end = std::max(time.end, last);
      check(*rank, lane, time.zero_pages);
    }
  }
  time.cycle = monotonic_clock().now() - called;
  time.cycle_cpu = process_cpu_time() - called_cpu;
  return time;
}

void Load::check(const Rank& rank, const Lane& lane, std::uint64_t& zero_pages) const {
  for (std::size_t i = 0; i < lane.reads.size(); ++i) {
    const PageFault fault = lane.faults[i];
    if (fault == PageFault::none) continue;
    zero_pages += fault == PageFault::zero;
    if (!options_.stamped && fault != PageFault::io && fault != PageFault::cut) continue;
    const std::uint64_t page = lane.reads[i].page;
    const auto& disks = rank.image->paths;
    if (const std::string failure = lane.errors[i] ? rank.source->failure() : ""; !failure.empty())
      throw DeviceError(fmt::format("layer {}: page {}: {}", lane.layer, page, failure));
    throw DeviceError(fmt::format("layer {}: page {} on {}: {}", lane.layer, page, disks[page % disks.size()],
                                  lane.errors[i] ? std::strerror(lane.errors[i]) : to_string(fault)));
  }
}

std::string Load::describe() const { return ranks_.front()->source->describe(); }

std::size_t Load::registered_bytes() const {
  std::size_t bytes = 0;
  for (const auto& rank : ranks_) bytes += rank->source->registered_bytes();
  return bytes;
}

std::vector<Load::Offset> Load::offsets(const std::vector<LayerPages>& pages, std::uint64_t batch,
                                        std::uint32_t rank) const {
  std::vector<Offset> offsets;
  std::vector<std::uint64_t> drawn;
  const ImageHeader& image = *ranks_[rank]->image;
  for (const LayerPages& layer : pages) {
    const ImageSegment& segment = segment_of(rank, layer.layer);
    draw_pages(options_.seed, rank, layer.layer, batch, pages_of(segment), layer.pages, drawn);
    for (const std::uint64_t page : drawn) {
      const std::size_t n = image.paths.size();
      offsets.push_back({layer.layer, page, image.paths[page % n], segment.base + page / n * image.geometry.page_bytes});
    }
  }
  return offsets;
}

ImageHeader unstamped_image(const std::vector<std::string>& disks, const std::vector<LayerPages>& layers,
                            std::uint32_t page_bytes, std::uint64_t bytes) {
  ImageHeader image;
  image.table = "unstamped";
  image.geometry.page_bytes = page_bytes;
  image.geometry.row_bytes = page_bytes - 32;
  image.geometry.rows_per_page = 1;
  image.disks = static_cast<std::uint32_t>(disks.size());
  image.paths = disks;
  const std::uint64_t pages = bytes / page_bytes * disks.size() / layers.size();
  std::uint64_t base = 0;
  for (const LayerPages& layer : layers) {
    ImageSegment segment;
    segment.layer = layer.layer;
    segment.pages = segment.stored_pages = segment.rows = pages;
    segment.base = base;
    base += pages / disks.size() * page_bytes;
    image.segments.push_back(segment);
  }
  return image;
}

}  // namespace slacktier
