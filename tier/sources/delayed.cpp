// Wrapper `delayed`: pages arrive no earlier than over a link of a given latency and bandwidth, first in, first out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "tier/known_links.hpp"
#include "tier/sources/deliveries.hpp"
#include "tier/sources/wrappers.hpp"

namespace slacktier {
namespace {

class DelayedSource final : public PageSource {
 public:
  DelayedSource(const LinkDelay& link, const Wrapping& wrapping)
      : link_(link),
        geometry_(wrapping.header.geometry),
        records_(!wrapping.options.remote.connect.empty() && wrapping.options.remote.granularity == Granularity::record),
        deliveries_("delayed"),
        inner_(wrapping.inner(wrapping.pool, wrapping.options)) {}

  void submit(ReadBatch& batch) override {
    Passage& passage = passages_.take();
    passage.source = this;
    {
      const std::lock_guard lock(mutex_);
      const double begin = static_cast<double>(monotonic_clock().now()) + 1e3 * link_.latency_us;
      const double carried = link_.gb_per_s > 0 ? bytes(batch) / link_.gb_per_s : 0;  // bytes / (GB/s) = ns
      free_at_ = std::max(begin, free_at_) + carried;
      passage.due = static_cast<Nanos>(free_at_);
    }
    passage.held.take_over(batch, &DelayedSource::inner_done, &passage);
    inner_->submit(batch);
  }

  bool set_delay(const LinkDelay& link) override {
    const std::lock_guard lock(mutex_);
    link_ = link;
    return true;
  }
  std::string describe() const override {
    const std::lock_guard lock(mutex_);
    std::string link = fmt::format("{} us", link_.latency_us);
    if (link_.gb_per_s > 0) link += fmt::format(" and {} GB/s", link_.gb_per_s);
    return fmt::format("{}, delayed as by a link of {}", inner_->describe(), link);
  }
  std::size_t registered_bytes() const override { return inner_->registered_bytes(); }
  std::string activity() const override { return inner_->activity(); }
  std::string failure() const override { return inner_->failure(); }

 private:
  struct Passage {
    HeldBatch held;
    DelayedSource* source = nullptr;
    Nanos due = 0;  // the last page's arrival over the link
  };

  // What crosses the link: whole pages, or of a remote source's records only those.
  double bytes(const ReadBatch& batch) const {
    if (!records_) return static_cast<double>(geometry_.page_bytes) * static_cast<double>(batch.reads.size());
    std::size_t sum = 0;
    for (const PageRead& read : batch.reads)
      if (read.records == whole_page)
        sum += geometry_.page_bytes;
      else
        for_records(read.records, geometry_, [&](std::size_t, std::size_t part) { sum += part; });
    return static_cast<double>(sum);
  }

  static void inner_done(ReadBatch& batch) {
    auto* passage = static_cast<Passage*>(batch.user);
    if (monotonic_clock().now() >= passage->due)
      pass_on(*passage);
    else
      passage->source->deliveries_.at(passage->due, &DelayedSource::due, passage);
  }
  static void due(void* what) {
    auto& passage = *static_cast<Passage*>(what);
    passage.held.batch->completed = monotonic_clock().now();
    pass_on(passage);
  }
  static void pass_on(Passage& passage) {
    ReadBatch& batch = passage.held.give_back();
    passage.source->passages_.put_back(passage);
    batch.done(batch);
  }

  mutable std::mutex mutex_;
  LinkDelay link_;
  const PageGeometry geometry_;
  const bool records_;
  double free_at_ = 0;  // when the link has carried all that was asked of it
  RecordPool<Passage> passages_;
  Deliveries deliveries_;
  std::unique_ptr<PageSource> inner_;  // last: it ends first, and what it still reads is delivered
};

}  // namespace

std::optional<LinkDelay> known_link(const std::string& name) {
  if (name == "100g-15us") return LinkDelay{15, 12.5};
  if (name == "25g-120us") return LinkDelay{120, 3.125};
  return {};
}

std::unique_ptr<PageSource> make_delayed_source(WrapperSettings& settings, const Wrapping* wrapping) {
  auto latency = settings.number("latency_us", 0, 1e7);
  auto bandwidth = settings.number("gb_per_s", 1e-3, 1e6);
  const auto link = settings.word("link");
  settings.finish();
  if (link) {
    if (latency || bandwidth) settings.refuse("link stands for both latency_us and gb_per_s: leave them out");
    const auto known = known_link(*link);
    if (!known) settings.refuse("link: use 100g-15us or 25g-120us");
    latency = known->latency_us;
    bandwidth = known->gb_per_s;
  }
  if (!latency && !bandwidth) settings.refuse("link, or at least one of latency_us and gb_per_s, is needed");
  if (wrapping == nullptr) return nullptr;
  return std::make_unique<DelayedSource>(LinkDelay{latency.value_or(0), bandwidth.value_or(0)}, *wrapping);
}

}  // namespace slacktier
