// Statistics of measured samples. Units are the caller's; every function is deterministic, random ones by their seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace slacktier {

// Nearest-rank percentile: the smallest sample x such that at least p * n samples are <= x (numpy: method="inverted_cdf").
// It is always a value that was measured. 0 < p <= 1. `sorted` ascends and is not empty, or InputError is thrown.
double percentile_of_sorted(std::span<const double> sorted, double p);
double percentile(std::span<const double> samples, double p);

// Samples that a claim about the p-quantile needs: the smallest n of which two may lie above the quantile with a binomial
// tail P(X <= 1) <= 1%, X ~ Binomial(n, 1 - p). It is the early-stopping rule of MLPerf's load generator
// (mlcommons/inference, loadgen/early_stopping.cc; confidence 0.99, tolerance 0, first estimate with one sample over): 64
// for p90, 662 for p99, 6,636 for p99.9. The rule takes samples for independent; autocorrelated ones support less, never
// more.
std::size_t samples_needed(double p);
// An upper bound of the p-quantile at 99% confidence by the same rule: the t-th largest sample with the largest t such that
// P(X <= t) <= 1%. Empty below samples_needed(p).
std::optional<double> percentile_bound(std::span<const double> samples, double p);

struct Summary {
  std::size_t n = 0;
  double mean = 0, min = 0, max = 0;  // NaN when n = 0
  double stddev = 0;                  // of the population the samples are drawn from (n - 1); NaN when n < 2
  double p50 = 0;                     // nearest rank
  std::optional<double> p99;          // only when n >= p99_needs
  std::optional<double> p99_bound;    // percentile_bound
  std::size_t p99_needs = 0;          // samples_needed(0.99)
};
Summary summarise(std::span<const double> samples);

struct Interval {
  double estimate = 0, lo = 0, hi = 0;
  bool covers(double value) const { return lo <= value && value <= hi; }
};

struct BootstrapOptions {
  std::uint64_t seed = 1;
  std::size_t resamples = 2000;
  double confidence = 0.95;
};

// A configuration against the baseline, both run in the same blocks. Means and percentiles are of all steps pooled.
struct Comparison {
  Interval mean;                // mean(steps) - mean(baseline)
  Interval mean_pct;            // 100 * (mean(steps) / mean(baseline) - 1)
  std::optional<Interval> p99;  // the same of the p99, when both sides have the samples for one
  std::optional<Interval> p99_pct;
};

// Hierarchical bootstrap paired by block: each resample draws blocks with replacement and then, in each drawn block, steps
// of either side with replacement. Steps of a block are autocorrelated; what they share shows between blocks, which is why
// blocks are drawn. Two corrections make a 95% interval cover 95% with as few as ten blocks:
// - Drawing steps adds their variance to that between blocks, which holds it already. For means the blocks' own means are
//   therefore pulled together until the total is the unbiased variance between blocks (Davison and Hinkley, Bootstrap
//   Methods and their Application, 1997, section 3.8). For p99 nothing is taken off: its interval is rather too wide.
// - Percentile intervals from N blocks are too narrow, so the tail probability is widened to Phi(-t(N - 1)), for p99 to
//   Phi(-sqrt(N / (N - 1)) * t(N - 1)): Hesterberg's expanded percentile interval (The American Statistician 69(4), 2015).
// steps[i] and baseline[i] are block i's step times in run order. Throws InputError for fewer than 2 blocks, different
// numbers of blocks, an empty block, or a value that is not finite.
using Blocks = std::span<const std::vector<double>>;
Comparison compare_blocks(Blocks steps, Blocks baseline, BootstrapOptions options = {});

// Does the interval above cover 0 where there is no difference? Each block's steps are cut in a first and a second half,
// which of them plays the baseline is drawn per block, and the halves are compared. Throws InputError as above; a block
// needs 2 steps.
struct AaCheck {
  Interval mean_pct;
  bool covers_zero = false;
};
AaCheck aa_check(Blocks baseline, BootstrapOptions options = {});

// Ordinary least squares of `values` on `order` (when each was run): change per unit of order, with the interval of
// Student's t with n - 2 degrees of freedom. Pass block means, not steps: those are autocorrelated. Throws InputError for
// fewer than 3 values, different lengths, or an order that is constant.
Interval run_order_slope(std::span<const double> order, std::span<const double> values, double confidence = 0.95);

// Mann-Whitney U test, two-sided. Pass block means for the same reason. Without ties and up to 2,500 pairs p is exact; else
// it is the normal approximation with tie and continuity corrections (scipy: mannwhitneyu, method exact or asymptotic).
struct MannWhitney {
  double u = 0;  // pairs (a, b) with a > b, ties counted half
  double p = 1;  // 1 when all values are equal
  bool exact = false;
};
MannWhitney mann_whitney(std::span<const double> a, std::span<const double> b);

}  // namespace slacktier
