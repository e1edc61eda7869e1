#include "reports/exposure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "reports/error.hpp"

namespace slacktier {
namespace {

void check(std::span<const double> arrival_ms, std::span<const double> window_ms) {
  if (arrival_ms.size() != window_ms.size())
    throw InputError(fmt::format("exposure: {} layers read, {} have a window", arrival_ms.size(), window_ms.size()));
  for (std::size_t k = 0; k < arrival_ms.size(); ++k)
    if (!std::isfinite(arrival_ms[k]) || !std::isfinite(window_ms[k]))
      throw InputError(fmt::format("exposure: layer {} in depth order: arrival {} ms or window {} ms is no number", k,
                                   arrival_ms[k], window_ms[k]));
}

}  // namespace

std::vector<double> exposures(std::span<const double> arrival_ms, std::span<const double> window_ms) {
  check(arrival_ms, window_ms);
  std::vector<double> exposed(arrival_ms.size());
  double delayed = 0;
  for (std::size_t k = 0; k < exposed.size(); ++k) {
    exposed[k] = std::max(0.0, arrival_ms[k] - window_ms[k] - delayed);
    delayed += exposed[k];
  }
  return exposed;
}

double exposed_ms(std::span<const double> arrival_ms, std::span<const double> window_ms) {
  check(arrival_ms, window_ms);
  double most = 0;
  for (std::size_t k = 0; k < arrival_ms.size(); ++k) most = std::max(most, arrival_ms[k] - window_ms[k]);
  return most;
}

double sum_of_excesses_ms(std::span<const double> arrival_ms, std::span<const double> window_ms) {
  check(arrival_ms, window_ms);
  double sum = 0;
  for (std::size_t k = 0; k < arrival_ms.size(); ++k) sum += std::max(0.0, arrival_ms[k] - window_ms[k]);
  return sum;
}

std::vector<double> slowest_arrivals(std::span<const RankReads> ranks) {
  if (ranks.empty()) throw InputError("exposure: no rank reads");
  std::vector<double> arrivals(ranks.front().read_ms.size(), 0.0);
  for (const RankReads& rank : ranks) {
    if (rank.read_ms.size() != arrivals.size())
      throw InputError(fmt::format("exposure: one rank has {} layers, another {}", arrivals.size(), rank.read_ms.size()));
    for (std::size_t k = 0; k < arrivals.size(); ++k)
      if (rank.read_ms[k] > 0) arrivals[k] = std::max(arrivals[k], rank.resolve_ms + rank.read_ms[k]);
  }
  return arrivals;
}

std::vector<double> exposed_samples(std::span<const std::vector<double>> arrivals_ms, std::span<const double> window_ms) {
  std::vector<double> samples;
  samples.reserve(arrivals_ms.size());
  for (const std::vector<double>& step : arrivals_ms) samples.push_back(exposed_ms(step, window_ms));
  return samples;
}

std::vector<double> scaled_windows(std::span<const double> window_ms, double measured_step_ms, double step_ms) {
  if (!(measured_step_ms > 0) || !(step_ms > 0) || !std::isfinite(measured_step_ms) || !std::isfinite(step_ms))
    throw InputError(fmt::format("exposure: windows of a step of {} ms for one of {} ms", measured_step_ms, step_ms));
  std::vector<double> scaled(window_ms.begin(), window_ms.end());
  for (double& window : scaled) window *= step_ms / measured_step_ms;
  return scaled;
}

}  // namespace slacktier
