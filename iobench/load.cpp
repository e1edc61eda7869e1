#include "iobench/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr std::uint32_t interleaved_pages = 16;
// Batches drawn while one is read, so that the next begins at once: the more of short ones, since the thread that draws is
// woken when half are gone, and disturbs the reads on a machine of few cores.
std::size_t batches_ahead(std::uint32_t pages) { return std::clamp<std::size_t>(512 / std::max(pages, 1u), 8, 128); }
constexpr Nanos long_batch = 3'000'000;

}  // namespace

const char* to_string(SubmitOrder order) { return order == SubmitOrder::layer_first ? "layer-first" : "interleaved"; }

SubmitOrder parse_submit_order(const std::string& text) {
  if (text == "layer-first") return SubmitOrder::layer_first;
  if (text == "interleaved") return SubmitOrder::interleaved;
  throw UsageError(fmt::format("--order {}: use layer-first or interleaved", text));
}

struct Load::Rank {
  const ImageHeader* image = nullptr;
  std::unique_ptr<PagePool> pool;
  std::unique_ptr<PageSource> source;  // after the pool it reads into
};

struct Load::Lane {
  int layer = 0;
  const ImageSegment* segment = nullptr;
  std::uint32_t first_buffer = 0;
  std::vector<std::uint64_t> pages;
  std::vector<PageRead> reads;
  std::vector<PageFault> faults;
  std::vector<int> errors;
  // One batch of the source, or as many as the interleaved order cuts it into.
  std::vector<std::unique_ptr<ReadBatch>> parts;
  std::size_t used_parts = 0;
};

struct Load::Batch {
  Load* load = nullptr;
  std::vector<std::vector<Lane>> lanes;  // [rank][layer]
  std::size_t layers = 0;                // that this batch asks for
  std::uint32_t parts = 0;
  std::atomic<std::uint32_t> pending{0};  // parts being read
  Nanos begin = 0;
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
    ranks_.push_back(std::move(rank));
  }
  std::uint32_t pages = 0;
  for (const LayerPages& wanted : most) pages += wanted.pages * options_.ranks;
  for (std::size_t i = 0, n = batches_ahead(pages); i < n; ++i) {
    auto batch = std::make_unique<Batch>();
    batch->load = this;
    for (std::uint32_t r = 0; r < options_.ranks; ++r) {
      batch->lanes.emplace_back();
      std::uint32_t buffers = 0;  // the same for all batches, which are read one after another
      for (const LayerPages& wanted : most) {
        Lane lane;
        lane.layer = wanted.layer;
        lane.segment = &segment_of(r, wanted.layer);
        lane.first_buffer = buffers;
        lane.reads.reserve(wanted.pages);
        lane.faults.resize(wanted.pages);
        lane.errors.resize(wanted.pages);
        buffers += wanted.pages;
        batch->lanes.back().push_back(std::move(lane));
      }
    }
    batches_.push_back(std::move(batch));
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

void Load::draw(Batch& batch, const std::vector<LayerPages>& pages, std::uint64_t number) const {
  batch.parts = 0;
  batch.layers = pages.size();
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    for (std::size_t l = 0; l < pages.size(); ++l) {
      Lane& lane = batch.lanes[r][l];
      const std::uint32_t count = pages[l].pages;
      draw_pages(options_.seed, r, lane.layer, number, pages_of(*lane.segment), count, lane.pages);
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
        part.epoch = number;
        part.user = &batch;
        part.done = [](ReadBatch& finished) {
          auto& whole = *static_cast<Batch*>(finished.user);
          if (whole.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) whole.load->ended();
        };
        ++batch.parts;
      }
    }
  }
}

void Load::submit(Batch& batch) {
  // One more, so that it does not end before all of it was submitted.
  batch.pending.store(batch.parts + 1, std::memory_order_release);
  batch.begin = monotonic_clock().now();
  std::size_t most_parts = 0;
  for (const auto& rank : batch.lanes)
    for (const Lane& lane : rank) most_parts = std::max(most_parts, lane.used_parts);
  // Layer first: a lane is one part.
  for (std::size_t p = 0; p < most_parts; ++p)
    for (std::size_t l = 0; l < batch.layers; ++l)
      for (std::size_t r = 0; r < ranks_.size(); ++r)
        if (Lane& lane = batch.lanes[r][l]; p < lane.used_parts) ranks_[r]->source->submit(*lane.parts[p]);
  if (batch.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) ended();
}

// Of a batch. The next begins here, on the thread that ended this one, when it is drawn.
void Load::ended() {
  Batch* next = nullptr;
  bool wake = false;
  {
    const std::lock_guard lock(chain_);
    ++finished_;
    if (begun_ < drawn_)
      next = batches_[begun_++ % batches_.size()].get();
    else
      idle_ = true;
    wake = finished_ >= wake_at_ || idle_;
  }
  if (wake) done_.ring();  // first, so that waking counts to no batch
  if (next) submit(*next);
}

BatchTime Load::run(const std::vector<LayerPages>& pages, std::uint64_t batch, Nanos start) {
  draw(*batches_.front(), pages, batch);
  drawn_ = begun_ = 1;
  finished_ = 0;
  idle_ = false;
  std::uint32_t seen = done_.count();
  if (start > 0) monotonic_clock().sleep_until(start);
  submit(*batches_.front());
  const auto busy = [&] {
    const std::lock_guard lock(chain_);
    return !idle_;
  };
  while (busy()) seen = done_.wait(seen);
  return times_of(*batches_.front());
}

std::uint32_t Load::run_back_to_back(const std::vector<LayerPages>& pages, std::uint64_t first, std::uint32_t count,
                                     const std::function<bool(const BatchTime&)>& keep) {
  const auto ahead = static_cast<std::uint32_t>(batches_.size());
  std::uint32_t kept = 0, last = count;  // no batch from `last` on is drawn
  std::exception_ptr failure;
  Nanos longest = 0;
  drawn_ = begun_ = finished_ = 0;
  idle_ = true;
  std::uint32_t seen = done_.count();
  for (;;) {
    // A batch's place is free again when its times were kept.
    for (std::uint32_t n = drawn_; n < last && n < kept + ahead; ++n) {
      try {
        draw(*batches_[n % ahead], pages, first + n);
      } catch (...) {
        failure = std::current_exception();
        last = n;
        break;
      }
      const std::lock_guard lock(chain_);
      drawn_ = n + 1;
      if (idle_) break;  // begin with one
    }
    Batch* begin = nullptr;
    std::uint32_t finished = 0;
    bool idle = false;
    {
      const std::lock_guard lock(chain_);
      if (idle_ && begun_ < drawn_ && begun_ < last) {
        begin = batches_[begun_++ % ahead].get();
        idle_ = false;
      }
      finished = finished_;
      idle = idle_;
      // Woken when half of what is drawn has been read, or all of it: waking costs what some pages cost. Of long batches it
      // wants to hear at once, since who asked may want to end.
      wake_at_ = std::min(kept + (kept > 0 && longest < long_batch ? std::max(1u, ahead / 2) : 1), last);
    }
    if (begin) {
      submit(*begin);
      continue;
    }
    if (kept == finished) {
      if (idle && drawn_ == finished) break;
      seen = done_.wait(seen);
      continue;
    }
    for (; kept < finished; ++kept) {
      if (kept >= last) continue;  // read, but not wanted any more
      try {
        const BatchTime time = times_of(*batches_[kept % ahead]);
        longest = std::max(longest, time.end - time.begin);
        if (!keep(time)) last = kept + 1;
      } catch (...) {
        failure = std::current_exception();
        last = kept;
      }
      const std::lock_guard lock(chain_);
      // What was drawn and has not begun never begins.
      if (last < drawn_) drawn_ = std::max(begun_, last);
    }
  }
  if (failure) std::rethrow_exception(failure);
  return std::min(kept, last);
}

BatchTime Load::times_of(const Batch& batch) const {
  BatchTime time;
  time.layers.resize(batch.layers);
  time.begin = time.end = batch.begin;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::vector<Lane>& lanes = batch.lanes[r];
    Nanos s = 0;  // the rank's first page
    for (std::size_t l = 0; l < batch.layers; ++l)
      for (std::size_t p = 0; p < lanes[l].used_parts; ++p)
        if (const Nanos at = lanes[l].parts[p]->submitted.load(std::memory_order_relaxed); s == 0 || at < s) s = at;
    for (std::size_t l = 0; l < batch.layers; ++l) {
      const Lane& lane = lanes[l];
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
      check(*ranks_[r], lane, time.zero_pages);
    }
  }
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
