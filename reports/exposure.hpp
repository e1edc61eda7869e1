// The exposure model: what a step's windows do not hide of its reads (Eq. 1 of the paper, for any number of layers). Layers
// stand in depth order; times in ms from the step's begin, t = 0.
//
//   d_k = max(0, s + T_k - W_k - sum over j < k of d_j)        slowdown = sum of d_k + kappa
//
// What a layer waits delays every later one, so its wait is time that the later reads have, too.
#pragma once

#include <span>
#include <vector>

namespace slacktier {

// d_k of every layer. `arrival_ms` is s + T_k of the slowest rank; 0 for a layer that reads nothing. The sum telescopes to
// the largest of 0 and arrival_ms[k] - window_ms[k] over all k. Throws InputError for lengths that differ or a value that is
// not finite.
std::vector<double> exposures(std::span<const double> arrival_ms, std::span<const double> window_ms);

// Their sum alone, and what one would expect if delays added up: the sum of what each layer exceeds its own window by.
double exposed_ms(std::span<const double> arrival_ms, std::span<const double> window_ms);
double sum_of_excesses_ms(std::span<const double> arrival_ms, std::span<const double> window_ms);

// One rank's reads of a step: when its first page went out, and each layer's T_k (0 where it reads nothing).
struct RankReads {
  double resolve_ms = 0;
  std::vector<double> read_ms;
};
// s + T_k of the slowest rank of each layer: at each layer all ranks wait for the last of them. Layers without a read of any
// rank arrive at 0. Throws InputError without ranks, or with different numbers of layers.
std::vector<double> slowest_arrivals(std::span<const RankReads> ranks);

// The same of many steps, each with its arrivals: the sum of exposures of every step, from which come mean and p99 of the
// slowdown. Taking means first would lose the steps that are late although the mean is not.
std::vector<double> exposed_samples(std::span<const std::vector<double>> arrivals_ms, std::span<const double> window_ms);

// Windows measured in a step of `measured_step_ms`, for one of `step_ms`: the model's layers stretch alike.
std::vector<double> scaled_windows(std::span<const double> window_ms, double measured_step_ms, double step_ms);

}  // namespace slacktier
