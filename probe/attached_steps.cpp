#include "probe/attached_steps.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

constexpr Nanos second = 1'000'000'000;
constexpr Nanos look_every = 200'000;

Nanos seconds(double s) { return static_cast<Nanos>(s * static_cast<double>(second)); }

}  // namespace

AttachedSteps::AttachedSteps(AttachOptions options) : options_(std::move(options)) {
  if (options_.delayed_rank >= options_.ranks)
    throw UsageError(fmt::format("--delay-rank {}: there are ranks 0 to {}", options_.delayed_rank, options_.ranks - 1));
  ranks_.resize(static_cast<std::size_t>(options_.ranks));
  attach();
}

AttachedSteps::~AttachedSteps() {
  if (std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return static_cast<bool>(rank.control); })) order({});
}

void AttachedSteps::attach() {
  const Nanos until = monotonic_clock().now() + seconds(options_.timeout_s);
  for (;;) {
    std::vector<int> missing;
    for (int r = 0; r < options_.ranks; ++r) {
      Rank& rank = ranks_[static_cast<std::size_t>(r)];
      if (!rank.samples) rank.samples = SharedFile::open(samples_path(options_.directory, r), sizeof(AttachedSamples));
      if (!rank.control) rank.control = SharedFile::open(control_path(options_.directory, r), sizeof(AttachedControl));
      if (!rank.samples || !rank.control ||
          samples_in(rank.samples).magic.load(std::memory_order_acquire) != attachment_magic)
        missing.push_back(r);
    }
    if (missing.empty()) break;
    if (options_.stop && options_.stop()) throw Interrupted();
    if (monotonic_clock().now() >= until)
      throw EnvironmentError(
          fmt::format("no engine has attached for rank{} {} of {} in {} within {:.3g} s: is slacktier installed in the "
                      "engine's Python, and "
                      "SLACKTIER_ATTACH={} set for it?",
                      missing.size() == 1 ? "" : "s", fmt::join(missing, ", "), options_.ranks, options_.directory.string(),
                      options_.timeout_s, options_.directory.string()));
    monotonic_clock().sleep_until(monotonic_clock().now() + 50 * look_every);
  }
  layers_ = static_cast<int>(samples_in(ranks_[0].samples).layers);
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    Rank& rank = ranks_[r];
    if (samples_in(rank.samples).layers != layers_)
      throw UsageError(fmt::format("ranks differ: rank 0 has {} layers, rank {} has {}; all of one engine have as many",
                                   layers_, r, samples_in(rank.samples).layers));
    rank.seen = samples_in(rank.samples).count.load(std::memory_order_acquire);
    order_ = std::max(order_, control_in(rank.control).order.load(std::memory_order_relaxed));
  }
  order_ += order_ % 2;
}

void AttachedSteps::order(std::span<const LayerDelay> delays) {
  order_ += 2;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    AttachedControl& control = control_in(ranks_[r].control);
    const bool delayed =
        !delays.empty() && (options_.delayed_rank < 0 || static_cast<std::size_t>(options_.delayed_rank) == r);
    control.order.store(order_ - 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    control.layer.store(delayed ? delays.front().layer : -1, std::memory_order_relaxed);
    control.delay_ns.store(delayed ? std::llround(delays.front().ms * 1e6) : 0, std::memory_order_relaxed);
    control.valid_until.store(monotonic_clock().now() + seconds(options_.timeout_s) + second, std::memory_order_relaxed);
    control.order.store(order_, std::memory_order_release);
  }
}

// The time of a step that counts, if there is a new one.
std::optional<double> AttachedSteps::look(int index) {
  Rank& rank = ranks_[static_cast<std::size_t>(index)];
  const AttachedSamples& samples = samples_in(rank.samples);
  const std::uint64_t count = samples.count.load(std::memory_order_acquire);
  rank.seen = std::max(rank.seen, count > attachment_samples / 2 ? count - attachment_samples / 2 : 0);
  while (rank.seen < count) {
    const AttachedSample sample = samples.ring[rank.seen++ % attachment_samples];
    ++rank.steps;
    if (sample.decode == 0) {
      ++rank.mixed;
      continue;
    }
    ++rank.batches[sample.batch];
    if (sample.batch != options_.batch || sample.order != order_) continue;
    if (sample.hooks != sample.hooked)
      throw CheckFailed(
          fmt::format("rank {}: {} of {} hooks ran in a step: hooks did not enter the graph, or layers are bypassed", index,
                      sample.hooks, sample.hooked));
    return static_cast<double>(sample.step_ns) / 1e6;
  }
  return {};
}

void AttachedSteps::time_out(const std::vector<int>& missing) const {
  std::string text;
  for (const int r : missing) {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    std::string seen =
        rank.steps == 0 ? "it did no step at all" : fmt::format("{} steps with other work than decoding", rank.mixed);
    for (const auto& [batch, n] : rank.batches) seen += fmt::format(", {} of batch {}", n, batch);
    text += fmt::format("{}rank {} did no decode-only step of batch {} in {:.3g} s (since the probe began: {})",
                        text.empty() ? "" : "; ", r, options_.batch, options_.timeout_s, seen);
  }
  throw EnvironmentError(text +
                         ": send it that many requests (--load URL does), or name the captured batch that its traffic has "
                         "with --batch");
}

double AttachedSteps::hooked(std::size_t, std::span<const LayerDelay> delays) {
  if (delays.size() > 1) throw UsageError("an attached engine delays one layer at a time");
  order(delays);
  const Nanos until = monotonic_clock().now() + seconds(options_.timeout_s);
  std::vector<std::optional<double>> took(ranks_.size());
  for (;;) {
    std::vector<int> missing;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!took[r]) took[r] = look(static_cast<int>(r));
      if (!took[r]) missing.push_back(static_cast<int>(r));
    }
    if (missing.empty()) break;
    if (options_.stop && options_.stop()) throw Interrupted();
    if (monotonic_clock().now() >= until) time_out(missing);
    monotonic_clock().sleep_until(monotonic_clock().now() + look_every);
  }
  double slowest = 0;
  for (const auto& ms : took) slowest = std::max(slowest, *ms);
  return slowest;
}

}  // namespace slacktier
