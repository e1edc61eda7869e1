#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reports/averages.hpp"
#include "reports/error.hpp"
#include "reports/probability.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

// xoshiro256++ (Blackman and Vigna), seeded by splitmix64: the same numbers on every platform, which <random> does not
// promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15;
      std::uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
      z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
      word = z ^ (z >> 31);
    }
  }
  std::uint64_t next() {
    const std::uint64_t result = rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  // Below n, n < 2^32; the bias of at most n / 2^32 is far below the resampling noise.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(((next() >> 32) * n) >> 32); }

 private:
  static std::uint64_t rotate(std::uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }
  std::uint64_t state_[4];
};

// One side of a comparison, prepared for drawing.
class Side {
 public:
  explicit Side(Blocks blocks) : blocks_(blocks) {
    std::vector<std::pair<double, std::size_t>> order;
    for (const auto& block : blocks) {
      starts_.push_back(order.size());
      for (const double step : block) order.push_back({step, order.size()});
      means.push_back(slacktier::mean(block));
    }
    steps = order.size();
    std::sort(order.begin(), order.end(), std::greater<>());
    place_.resize(steps);
    for (std::size_t i = 0; i < steps; ++i) {
      descending_.push_back(order[i].first);
      place_[order[i].second] = static_cast<std::uint32_t>(i);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i)
      mean += means[i] * static_cast<double>(blocks[i].size()) / static_cast<double>(steps);
    p99 = percentile_of(steps, [](std::size_t) { return 1u; });
  }

  // Variance of the mean of block i's steps, drawn one by one.
  double drawn_mean_variance(std::size_t i) const {
    double squares = 0;
    for (const double step : blocks_[i]) squares += (step - means[i]) * (step - means[i]);
    const double n = static_cast<double>(blocks_[i].size());
    return squares / n / n;
  }

  struct Draw {
    double mean, p99;
  };
  // Steps of the blocks in `chosen`, drawn with replacement. In the mean, a block's own mean is pulled to the grand mean by
  // `shrink`; the p99 is of the steps as they are.
  Draw draw(const std::vector<std::size_t>& chosen, double shrink, bool with_p99, Random& random) {
    if (with_p99) counts_.assign(steps, 0);
    double sum = 0;
    std::size_t drawn = 0;
    for (const std::size_t block : chosen) {
      const std::vector<double>& values = blocks_[block];
      const std::uint32_t* places = place_.data() + starts_[block];
      double block_sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t pick = random.below(values.size());
        block_sum += values[pick];
        if (with_p99) ++counts_[places[pick]];
      }
      const double n = static_cast<double>(values.size());
      sum += n * mean + shrink * n * (means[block] - mean) + (block_sum - n * means[block]);
      drawn += values.size();
    }
    return {sum / static_cast<double>(drawn),
            with_p99 ? percentile_of(drawn, [&](std::size_t i) { return counts_[i]; }) : 0};
  }

  double mean = 0, p99 = 0;
  std::size_t steps = 0;
  std::vector<double> means;  // by block

 private:
  // Nearest-rank p99 of `total` values of which count(i) equal the i-th largest step.
  template <class Count>
  double percentile_of(std::size_t total, Count count) const {
    const std::size_t above = total - static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(total) - 1e-9));
    std::size_t seen = 0, i = 0;
    for (; i + 1 < descending_.size(); ++i) {
      seen += count(i);
      if (seen > above) break;
    }
    return descending_[i];
  }

  Blocks blocks_;
  std::vector<std::size_t> starts_;
  std::vector<double> descending_;
  std::vector<std::uint32_t> place_;   // of each step in descending_
  std::vector<std::uint32_t> counts_;  // by place in descending_
};

// Interval from resampled statistics: the tail probability on either side is `tail`.
Interval interval(double estimate, std::vector<double>& resampled, double tail) {
  std::sort(resampled.begin(), resampled.end());
  const double last = static_cast<double>(resampled.size() - 1);
  const auto quantile = [&](double p) {
    const double place = p * last;
    const std::size_t below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, resampled.size() - 1);
    return resampled[below] + (place - static_cast<double>(below)) * (resampled[above] - resampled[below]);
  };
  return {estimate, quantile(tail), quantile(1 - tail)};
}

void check_blocks(Blocks blocks, const char* name, std::size_t least_steps) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i].size() < least_steps)
      throw InputError(
          fmt::format("{}: block {} has {} steps, at least {} are needed", name, i, blocks[i].size(), least_steps));
    for (const double step : blocks[i])
      if (!std::isfinite(step)) throw InputError(fmt::format("{}: block {} holds a step that is not finite", name, i));
  }
}

// By how much block means must be pulled together so that drawing blocks and then steps gives the variance between blocks,
// and not that plus the variance within them once more (Davison and Hinkley, Bootstrap Methods and their Application,
// section 3.8).
double block_shrinkage(const Side& steps, const Side& baseline) {
  const std::size_t n = steps.means.size();
  std::vector<double> differences(n);
  double within = 0;
  for (std::size_t i = 0; i < n; ++i) {
    differences[i] = steps.means[i] - baseline.means[i];
    within += (steps.drawn_mean_variance(i) + baseline.drawn_mean_variance(i)) / static_cast<double>(n);
  }
  const double centre = mean(differences);
  double between = 0;  // what drawing blocks alone gives, times n
  for (const double difference : differences)
    between += (difference - centre) * (difference - centre) / static_cast<double>(n);
  if (!(between > 0)) return 1;
  const double target = between * static_cast<double>(n) / static_cast<double>(n - 1);  // unbiased
  return std::sqrt(std::max(0.0, target - within) / between);
}

}  // namespace

Comparison compare_blocks(Blocks steps, Blocks baseline, BootstrapOptions options) {
  if (steps.size() != baseline.size())
    throw InputError(
        fmt::format("comparison by blocks: {} blocks against {} of the baseline", steps.size(), baseline.size()));
  if (steps.size() < 2)
    throw InputError(fmt::format("comparison by blocks: {} blocks, at least 2 are needed", steps.size()));
  if (options.resamples < 2) throw InputError("comparison by blocks: fewer than 2 resamples");
  check_blocks(steps, "steps", 1);
  check_blocks(baseline, "baseline", 1);

  Side ours(steps), theirs(baseline);
  const bool with_p99 = std::min(ours.steps, theirs.steps) >= samples_needed(0.99);
  const double shrink = block_shrinkage(ours, theirs);
  Random random(options.seed);
  std::vector<double> mean, mean_pct, p99, p99_pct;
  std::vector<std::size_t> chosen(steps.size());
  for (std::size_t i = 0; i < options.resamples; ++i) {
    for (std::size_t& block : chosen) block = random.below(steps.size());
    const Side::Draw a = ours.draw(chosen, shrink, with_p99, random);
    const Side::Draw b = theirs.draw(chosen, shrink, with_p99, random);
    mean.push_back(a.mean - b.mean);
    mean_pct.push_back(100 * (a.mean / b.mean - 1));
    if (with_p99) {
      p99.push_back(a.p99 - b.p99);
      p99_pct.push_back(100 * (a.p99 / b.p99 - 1));
    }
  }

  const double n = static_cast<double>(steps.size());
  const double t = student_quantile((1 - options.confidence) / 2, n - 1);
  // The shrinkage has made the variance of means unbiased already; that of p99s needs the factor.
  const double mean_tail = normal_cdf(t), p99_tail = normal_cdf(t * std::sqrt(n / (n - 1)));
  Comparison result;
  result.mean = interval(ours.mean - theirs.mean, mean, mean_tail);
  result.mean_pct = interval(100 * (ours.mean / theirs.mean - 1), mean_pct, mean_tail);
  if (with_p99) {
    result.p99 = interval(ours.p99 - theirs.p99, p99, p99_tail);
    result.p99_pct = interval(100 * (ours.p99 / theirs.p99 - 1), p99_pct, p99_tail);
  }
  return result;
}

AaCheck aa_check(Blocks baseline, BootstrapOptions options) {
  check_blocks(baseline, "baseline", 2);
  Random random(options.seed ^ 0x5a5a5a5a5a5a5a5a);
  std::vector<std::vector<double>> a, b;
  for (const auto& block : baseline) {
    const auto middle = block.begin() + static_cast<std::ptrdiff_t>(block.size() / 2);
    a.emplace_back(block.begin(), middle);
    b.emplace_back(middle, block.end());
    if (random.below(2) == 1) std::swap(a.back(), b.back());
  }
  AaCheck check;
  check.mean_pct = compare_blocks(a, b, options).mean_pct;
  check.covers_zero = check.mean_pct.covers(0);
  return check;
}

}  // namespace slacktier
