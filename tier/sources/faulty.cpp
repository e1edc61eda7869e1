// Wrapper `faulty`: reads that fail, and pages that are not what was asked for. The bytes are damaged in the pool before the
// source checks them, so what is tested is the source's own check and everything behind it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <random>
#include <string_view>

#include "tier/sources/deliveries.hpp"
#include "tier/sources/wrappers.hpp"

namespace slacktier {
namespace {

enum class Fault : std::uint8_t { none, eio, cut, late, torn, stale, zero, foreign, misplaced };

struct FaultName {
  const char* name;
  Fault fault;
};
constexpr FaultName fault_names[] = {
    {"eio", Fault::eio},      // the read fails
    {"short", Fault::cut},    // half of the page comes
    {"late", Fault::late},    // the page comes late_ms after the others of its batch
    {"torn", Fault::torn},    // trailer right, records not: only the whole checksum (checked mode) tells
    {"stale", Fault::stale},  // of an earlier staging
    {"zero", Fault::zero},    // never written
    {"foreign", Fault::foreign}, {"misplaced", Fault::misplaced},
};

// What stands in a buffer whose page is not in: a row made of it is seen by every check.
constexpr int nothing_yet = 0xEE;

struct FaultPlan {
  std::vector<Fault> classes;
  std::uint64_t nth = 0;   // the read that is hit, from 1; 0: by probability
  double probability = 0;  // of each read
  std::uint64_t seed = 1;
  Nanos late = 0;
};

class FaultySource final : public PageSource, private ArrivalTap {
 public:
  FaultySource(const FaultPlan& plan, const Wrapping& wrapping)
      : plan_(plan),
        pool_(wrapping.pool),
        nonce_(wrapping.header.nonce),
        outer_tap_(wrapping.options.tap),
        random_(plan.seed),
        deliveries_("late-pages") {
    active_.reserve(16);
    SourceOptions options = wrapping.options;
    options.tap = this;
    inner_ = wrapping.inner(wrapping.pool, options);
  }

  void submit(ReadBatch& batch) override {
    Plight& plight = plights_.take();
    if (!choose(batch, plight)) {
      plights_.put_back(plight);
      return inner_->submit(batch);
    }
    plight.source = this;
    plight.held.take_over(batch, &FaultySource::inner_done, &plight);
    {
      const std::lock_guard lock(mutex_);
      active_.push_back(&plight);
      active_count_.store(active_.size(), std::memory_order_release);
    }
    inner_->submit(batch);
  }

  std::string describe() const override {
    std::vector<std::string> classes;
    for (const auto& [name, fault] : fault_names)
      if (std::find(plan_.classes.begin(), plan_.classes.end(), fault) != plan_.classes.end()) classes.emplace_back(name);
    const std::string when =
        plan_.nth > 0 ? fmt::format("read {}", plan_.nth) : fmt::format("each read with probability {}", plan_.probability);
    return fmt::format("{}, made faulty ({}; {})", inner_->describe(), fmt::join(classes, ", "), when);
  }
  bool set_delay(const LinkDelay& delay) override { return inner_->set_delay(delay); }
  std::size_t registered_bytes() const override { return inner_->registered_bytes(); }
  std::string failure() const override { return inner_->failure(); }
  std::string activity() const override {
    std::uint64_t sum = 0;
    std::vector<std::string> parts;
    for (const auto& [name, fault] : fault_names)
      if (const std::uint64_t n = made_[static_cast<std::size_t>(fault)].load(std::memory_order_relaxed); n > 0) {
        sum += n;
        parts.push_back(fmt::format("{} {}", n, name));
      }
    const std::string text = fmt::format("{} faulty reads{}{}", sum, parts.empty() ? "" : ": ", fmt::join(parts, ", "));
    const std::string inner = inner_->activity();
    return inner.empty() ? text : inner + "; " + text;
  }

 private:
  // What happens to the reads of one batch.
  struct Plight {
    HeldBatch held;
    FaultySource* source = nullptr;
    std::vector<Fault> faults;  // one per read
    std::vector<std::byte> late;
  };

  // In the order of the batch's reads, so that a seed hits the same reads whatever the threads do.
  bool choose(const ReadBatch& batch, Plight& plight) {
    const std::lock_guard lock(mutex_);
    plight.faults.assign(batch.reads.size(), Fault::none);
    bool any = false;
    for (auto& fault : plight.faults) {
      ++reads_;
      const bool hit = plan_.nth > 0 ? reads_ == plan_.nth : chance_(random_) < plan_.probability;
      if (!hit) continue;
      fault = plan_.classes[random_() % plan_.classes.size()];
      made_[static_cast<std::size_t>(fault)].fetch_add(1, std::memory_order_relaxed);
      any = true;
    }
    return any;
  }

  void arrived(const ReadBatch& batch, std::size_t read, std::byte* page, int& result) override {
    if (active_count_.load(std::memory_order_acquire) > 0) {
      Fault fault = Fault::none;
      {
        const std::lock_guard lock(mutex_);
        for (const Plight* plight : active_)
          if (plight->held.batch == &batch) fault = plight->faults[read];
      }
      damage(fault, *batch.segment, batch.reads[read].page, {page, pool_.page_bytes()}, result);
    }
    if (outer_tap_) outer_tap_->arrived(batch, read, page, result);
  }

  void damage(Fault fault, const ImageSegment& segment, std::uint64_t number, std::span<std::byte> page, int& result) const {
    const std::size_t half = page.size() / 2;
    // Other records, as a page of another place or time has them.
    const auto change = [&] {
      for (std::byte& byte : page.first(half)) byte ^= std::byte{0x5A};
    };
    switch (fault) {
      case Fault::none:
      case Fault::late:
        return;
      case Fault::eio:
        std::memset(page.data(), nothing_yet, page.size());
        result = -EIO;
        return;
      case Fault::cut:
        std::memset(page.data() + half, nothing_yet, half);
        result = static_cast<int>(half);
        return;
      case Fault::torn:
        return change();
      case Fault::zero:
        std::memset(page.data(), 0, page.size());
        return;
      case Fault::stale:
        change();
        return seal_page(page, number, segment.image, nonce_ + 1);
      case Fault::foreign:
        change();
        return seal_page(page, number, segment.image + 1, nonce_);
      case Fault::misplaced:
        change();
        return seal_page(page, number + 1, segment.image, nonce_);
    }
  }

  static void inner_done(ReadBatch& batch) {
    auto& plight = *static_cast<Plight*>(batch.user);
    FaultySource& source = *plight.source;
    {
      const std::lock_guard lock(source.mutex_);
      std::erase(source.active_, &plight);
      source.active_count_.store(source.active_.size(), std::memory_order_release);
    }
    if (std::find(plight.faults.begin(), plight.faults.end(), Fault::late) == plight.faults.end())
      return source.pass_on(plight);
    plight.late.clear();
    source.each_late(plight, [&](std::byte* page, std::size_t) {
      plight.late.insert(plight.late.end(), page, page + source.pool_.page_bytes());
      std::memset(page, nothing_yet, source.pool_.page_bytes());
    });
    source.deliveries_.at(monotonic_clock().now() + source.plan_.late, &FaultySource::come_late, &plight);
  }

  static void come_late(void* what) {
    auto& plight = *static_cast<Plight*>(what);
    FaultySource& source = *plight.source;
    source.each_late(plight, [&](std::byte* page, std::size_t nth) {
      std::memcpy(page, plight.late.data() + nth * source.pool_.page_bytes(), source.pool_.page_bytes());
    });
    plight.held.batch->completed = monotonic_clock().now();
    source.pass_on(plight);
  }

  template <class Do>
  void each_late(const Plight& plight, const Do& act) const {
    std::size_t nth = 0;
    for (std::size_t i = 0; i < plight.faults.size(); ++i)
      if (plight.faults[i] == Fault::late) act(pool_.page(plight.held.batch->reads[i].buffer), nth++);
  }

  void pass_on(Plight& plight) {
    ReadBatch& batch = plight.held.give_back();
    plights_.put_back(plight);
    batch.done(batch);
  }

  const FaultPlan plan_;
  const PagePool& pool_;
  const std::uint64_t nonce_;
  ArrivalTap* const outer_tap_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> chance_{0, 1};
  std::uint64_t reads_ = 0;
  std::vector<Plight*> active_;  // batches between submit and the inner source's completion
  std::atomic<std::size_t> active_count_{0};
  std::array<std::atomic<std::uint64_t>, 9> made_{};  // by Fault
  RecordPool<Plight> plights_;
  Deliveries deliveries_;
  std::unique_ptr<PageSource> inner_;  // last: it ends first, and what it still reads is delivered
};

}  // namespace

std::vector<std::string> fault_classes() {
  std::vector<std::string> names;
  for (const auto& entry : fault_names) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<PageSource> make_faulty_source(WrapperSettings& settings, const Wrapping* wrapping) {
  FaultPlan plan;
  const auto classes = settings.word("class");
  const auto nth = settings.count("nth", 1, UINT64_MAX);
  const auto probability = settings.number("probability", 0, 1);
  const auto seed = settings.count("seed", 0, UINT32_MAX);
  const auto late = settings.number("late_ms", 0, 60'000);
  settings.finish();
  const std::string known = fmt::format("{}", fmt::join(fault_classes(), ", "));
  if (!classes) settings.refuse("class is needed: one or more, joined by +, of " + known);
  std::string_view rest = *classes;
  for (;;) {
    const std::string_view name = rest.substr(0, rest.find('+'));
    const auto found = std::find_if(std::begin(fault_names), std::end(fault_names),
                                    [&](const FaultName& entry) { return name == entry.name; });
    if (found == std::end(fault_names))
      settings.refuse(fmt::format("class: '{}' is none; use one or more, joined by +, of {}", name, known));
    plan.classes.push_back(found->fault);
    if (name.size() == rest.size()) break;
    rest.remove_prefix(name.size() + 1);
  }
  if (nth.has_value() == probability.has_value()) settings.refuse("either nth or probability is needed");
  plan.nth = nth.value_or(0);
  plan.probability = probability.value_or(0);
  plan.seed = seed.value_or(1);
  plan.late = static_cast<Nanos>(1e6 * late.value_or(20));
  if (wrapping == nullptr) return nullptr;
  return std::make_unique<FaultySource>(plan, *wrapping);
}

}  // namespace slacktier
