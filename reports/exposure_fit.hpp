// The exposure model against measured slowdowns: kappa and, where wanted, windows by least squares; and what a model that is
// given says of runs it never saw. Times in ms; layers in depth order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/results.hpp"
#include "reports/results_file.hpp"
#include "reports/samples.hpp"

namespace slacktier {

// One run: what its layers read, and what it cost.
struct ExposureRun {
  std::string name;                    // "agent: both on 1 disk"
  std::vector<int> k;                  // model layers that have a window or read something
  std::vector<double> arrival_ms;      // s + T_k, slowest rank; 0: reads nothing
  std::vector<double> window_ms;       // W_k; NaN: unknown, to be fitted
  double slowdown_ms = 0;              // measured, against the baseline
  std::optional<double> lo_ms, hi_ms;  // its 95% interval
  std::optional<double> stall_ms;      // measured at the gates, all layers together, slowest rank
};

// The runs of a results file: all configurations that have a slowdown, with means of s and T_k of the slowest rank. `named`
// goes before each name when it is not empty. Throws InputError when none is there.
std::vector<ExposureRun> exposure_runs(const Envelope& results, const std::string& named = "");

struct FittedWindow {
  int k = 0;
  Interval w_ms;  // both ends equal the estimate where the window was given
  bool fitted = false;
};

struct ExposurePoint {
  std::string name;
  double measured_ms = 0, predicted_ms = 0;
  std::optional<double> lo_ms, hi_ms;
};

struct ExposureFit {
  std::size_t n = 0;
  Interval kappa_ms;
  bool kappa_fitted = false;
  std::vector<FittedWindow> windows;
  std::optional<double> r2;  // empty when all runs were equally slow
  double rmse_ms = 0;
  std::vector<ExposurePoint> points;  // in the runs' order
};

// Least squares over the runs: kappa, and the windows of `fit_windows` (model layers), which are the same in all runs.
// Intervals are 95% percentiles of a bootstrap over runs, tails widened for few of them as in reports/samples.hpp. Throws
// InputError for fewer runs than parameters + 1, a layer that no run reads, or a window that is neither known nor fitted.
ExposureFit fit_exposure(std::span<const ExposureRun> runs, std::span<const int> fit_windows, std::uint64_t seed = 1);

// The runs under a model that is given: `model.kappa_ms` and its windows, which stand before the runs' own.
ExposureFit check_exposure(std::span<const ExposureRun> runs, const ExposureFit& model);

// As file of kind "exposure" and back. Throws InputError naming the field.
void set_exposure(Envelope& envelope, const ExposureFit& fit);
ExposureFit exposure_of(const Envelope& envelope);

}  // namespace slacktier
