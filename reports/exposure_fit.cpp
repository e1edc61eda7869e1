#include "reports/exposure_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>

#include "reports/averages.hpp"
#include "reports/error.hpp"
#include "reports/exposure.hpp"
#include "reports/field_reader.hpp"
#include "reports/probability.hpp"

namespace slacktier {
namespace {

constexpr std::size_t resamples = 400;

// The windows to be found, by layer.
using Windows = std::map<int, double>;

double exposed(const ExposureRun& run, const Windows& windows) {
  std::vector<double> window = run.window_ms;
  for (std::size_t l = 0; l < run.k.size(); ++l)
    if (const auto found = windows.find(run.k[l]); found != windows.end()) window[l] = found->second;
  return exposed_ms(run.arrival_ms, window);
}

// Sum of squares with the best kappa, which is the mean of what is left.
struct Score {
  double squares = 0, kappa = 0;
};
Score score(std::span<const ExposureRun* const> runs, const Windows& windows) {
  double sum = 0, squares = 0;
  for (const ExposureRun* run : runs) {
    const double left = run->slowdown_ms - exposed(*run, windows);
    sum += left;
    squares += left * left;
  }
  const auto n = static_cast<double>(runs.size());
  return {squares - sum * sum / n, sum / n};
}

// One window after another: a grid over all it could be, then a golden section around the best; until nothing gets better.
// The squares are piecewise quadratic in each window, with several minima at most near the runs' arrivals.
Score minimise(std::span<const ExposureRun* const> runs, Windows& windows, int rounds) {
  double longest = 0;
  for (const ExposureRun* run : runs)
    for (const double arrival : run->arrival_ms) longest = std::max(longest, arrival);
  Score best = score(runs, windows);
  for (int round = 0; round < rounds && !windows.empty(); ++round) {
    const double before = best.squares;
    for (auto& [k, w] : windows) {
      const auto at = [&w = w, &runs, &windows](double value) {
        w = value;
        return score(runs, windows).squares;
      };
      constexpr int cells = 64;
      double least = w, squares = best.squares;
      for (int i = 0; i <= cells; ++i) {
        const double value = longest * i / cells;
        if (const double s = at(value); s < squares) squares = s, least = value;
      }
      double lo = std::max(0.0, least - longest / cells), hi = least + longest / cells;
      constexpr double ratio = 0.6180339887498949;
      for (int i = 0; i < 40; ++i) {
        const double a = hi - ratio * (hi - lo), b = lo + ratio * (hi - lo);
        (at(a) <= at(b) ? hi : lo) = at(a) <= at(b) ? b : a;
      }
      if (at((lo + hi) / 2) < squares) least = (lo + hi) / 2;
      w = least;
      best = score(runs, windows);
    }
    if (before - best.squares <= 1e-12 * (before + 1e-30)) break;
  }
  return best;
}

// As in reports/samples.hpp: the percentile interval of few runs is too narrow.
Interval expanded(double estimate, std::vector<double> draws, std::size_t n) {
  std::sort(draws.begin(), draws.end());
  const double size = static_cast<double>(std::max<std::size_t>(n, 3));
  const double tail = normal_cdf(std::sqrt(size / (size - 1)) * student_quantile(0.025, size - 1));
  return {estimate, percentile_of_sorted(draws, std::max(tail, 1e-9)), percentile_of_sorted(draws, 1 - tail)};
}

void fill_points(std::span<const ExposureRun> runs, const Windows& windows, ExposureFit& fit) {
  fit.n = runs.size();
  double squares = 0, total = 0, average = 0;
  for (const ExposureRun& run : runs) average += run.slowdown_ms / static_cast<double>(runs.size());
  for (const ExposureRun& run : runs) {
    ExposurePoint point{run.name, run.slowdown_ms, exposed(run, windows) + fit.kappa_ms.estimate, run.lo_ms, run.hi_ms};
    squares += (point.measured_ms - point.predicted_ms) * (point.measured_ms - point.predicted_ms);
    total += (point.measured_ms - average) * (point.measured_ms - average);
    fit.points.push_back(point);
  }
  fit.rmse_ms = std::sqrt(squares / static_cast<double>(runs.size()));
  if (total > 0) fit.r2 = 1 - squares / total;
}

// Windows that the runs give alike are part of what the model says.
void note_given(std::span<const ExposureRun> runs, ExposureFit& fit) {
  std::map<int, double> given;
  for (const ExposureRun& run : runs)
    for (std::size_t l = 0; l < run.k.size(); ++l)
      if (std::isfinite(run.window_ms[l])) given.try_emplace(run.k[l], run.window_ms[l]);
  for (const auto& [k, w] : given)
    if (std::none_of(fit.windows.begin(), fit.windows.end(), [&k = k](const auto& window) { return window.k == k; }))
      fit.windows.push_back({k, {w, w, w}, false});
  std::sort(fit.windows.begin(), fit.windows.end(), [](const auto& a, const auto& b) { return a.k < b.k; });
}

void check_known(std::span<const ExposureRun> runs, const Windows& windows) {
  for (const ExposureRun& run : runs)
    for (std::size_t l = 0; l < run.k.size(); ++l)
      if (run.arrival_ms[l] > 0 && !std::isfinite(run.window_ms[l]) && !windows.contains(run.k[l]))
        throw InputError(
            fmt::format("{}: layer {} reads, but has no window: give one with --windows or fit it with --fit-windows {}",
                        run.name, run.k[l], run.k[l]));
}

// A layer that neither reads nor has a window counts nothing: 0 keeps the arithmetic finite.
std::vector<ExposureRun> with_idle_windows(std::span<const ExposureRun> runs) {
  std::vector<ExposureRun> all(runs.begin(), runs.end());
  for (ExposureRun& run : all)
    for (std::size_t l = 0; l < run.k.size(); ++l)
      if (!std::isfinite(run.window_ms[l])) run.window_ms[l] = 0;
  return all;
}

}  // namespace

std::vector<ExposureRun> exposure_runs(const Envelope& results, const std::string& named) {
  std::vector<ExposureRun> runs;
  for (const ConfigurationResult& configuration : configurations(results)) {
    if (!configuration.slowdown) continue;
    ExposureRun run;
    run.name = fmt::format("{}{}: {}", named.empty() ? "" : named + ": ", configuration.workload, configuration.name);
    std::vector<double> resolve;  // by rank, of the first layer that submits something
    double stall = 0;
    bool stalls = false;
    for (const LayerResult& layer : configuration.layers) {
      double arrival = 0, waited = 0;
      for (std::size_t r = 0; r < layer.ranks.size(); ++r) {
        const RankResult& rank = layer.ranks[r];
        resolve.resize(std::max(resolve.size(), r + 1), std::numeric_limits<double>::quiet_NaN());
        if (std::isnan(resolve[r]) && rank.t_submit_us.mean) resolve[r] = *rank.t_submit_us.mean / 1e3;
        if (rank.t_done_us.mean && *rank.t_done_us.mean > 0 && !std::isnan(resolve[r]))
          arrival = std::max(arrival, resolve[r] + *rank.t_done_us.mean / 1e3);
        if (rank.stall_us.mean) waited = std::max(waited, *rank.stall_us.mean / 1e3), stalls = true;
      }
      run.k.push_back(layer.k);
      run.arrival_ms.push_back(arrival);
      run.window_ms.push_back(layer.window_ms.value_or(std::numeric_limits<double>::quiet_NaN()));
      stall += waited;
    }
    if (stalls) run.stall_ms = stall;
    run.slowdown_ms = configuration.slowdown->mean_ms.estimate;
    run.lo_ms = configuration.slowdown->mean_ms.lo;
    run.hi_ms = configuration.slowdown->mean_ms.hi;
    runs.push_back(std::move(run));
  }
  if (runs.empty())
    throw InputError(fmt::format("{}: has no configuration with a slowdown against a baseline",
                                 results.file.empty() ? "results file" : results.file));
  return runs;
}

ExposureFit fit_exposure(std::span<const ExposureRun> runs, std::span<const int> fit_windows, std::uint64_t seed) {
  Windows windows;
  for (const int k : fit_windows) {
    double shortest = std::numeric_limits<double>::infinity();
    for (const ExposureRun& run : runs)
      for (std::size_t l = 0; l < run.k.size(); ++l)
        if (run.k[l] == k && run.arrival_ms[l] > 0) shortest = std::min(shortest, run.arrival_ms[l]);
    if (!std::isfinite(shortest)) throw InputError(fmt::format("fit of layer {}'s window: no run reads that layer", k));
    windows[k] = shortest;
  }
  if (runs.size() < windows.size() + 2)
    throw InputError(fmt::format("fit of kappa and {} window(s): {} run(s); {} are needed", windows.size(), runs.size(),
                                 windows.size() + 2));
  check_known(runs, windows);
  const std::vector<ExposureRun> all = with_idle_windows(runs);
  std::vector<const ExposureRun*> chosen;
  for (const ExposureRun& run : all) chosen.push_back(&run);
  const Score best = minimise(chosen, windows, 50);

  std::mt19937_64 random(seed);
  std::vector<double> kappas;
  std::map<int, std::vector<double>> drawn_windows;
  std::vector<const ExposureRun*> drawn(all.size());
  for (std::size_t i = 0; i < resamples; ++i) {
    for (const ExposureRun*& run : drawn) run = &all[random() % all.size()];
    Windows found = windows;
    kappas.push_back(minimise(drawn, found, 4).kappa);
    for (const auto& [k, w] : found) drawn_windows[k].push_back(w);
  }
  ExposureFit fit;
  fit.kappa_fitted = true;
  fit.kappa_ms = expanded(best.kappa, std::move(kappas), runs.size());
  for (const auto& [k, w] : windows) fit.windows.push_back({k, expanded(w, drawn_windows[k], runs.size()), true});
  fill_points(all, windows, fit);
  note_given(runs, fit);
  return fit;
}

ExposureFit check_exposure(std::span<const ExposureRun> runs, const ExposureFit& model) {
  if (runs.empty()) throw InputError("exposure: no run to compare with");
  Windows windows;
  for (const FittedWindow& window : model.windows) windows[window.k] = window.w_ms.estimate;
  check_known(runs, windows);
  ExposureFit fit;
  fit.kappa_ms = model.kappa_ms;
  fit.windows = model.windows;
  fill_points(with_idle_windows(runs), windows, fit);
  note_given(runs, fit);
  return fit;
}

void set_exposure(Envelope& envelope, const ExposureFit& fit) {
  envelope.kind = "exposure";
  const auto interval = [](const Interval& value) {
    return Json{{"estimate", value.estimate}, {"lo", value.lo}, {"hi", value.hi}};
  };
  Json json = {{"n", fit.n},
               {"kappa_ms", interval(fit.kappa_ms)},
               {"kappa_fitted", fit.kappa_fitted},
               {"r2", or_null(fit.r2)},
               {"rmse_ms", fit.rmse_ms}};
  json["windows"] = Json::array();
  for (const FittedWindow& window : fit.windows)
    json["windows"].push_back({{"k", window.k}, {"w_ms", interval(window.w_ms)}, {"fitted", window.fitted}});
  json["points"] = Json::array();
  for (const ExposurePoint& point : fit.points)
    json["points"].push_back({{"name", point.name},
                              {"measured_ms", point.measured_ms},
                              {"lo_ms", or_null(point.lo_ms)},
                              {"hi_ms", or_null(point.hi_ms)},
                              {"predicted_ms", point.predicted_ms}});
  envelope.results = json;
}

ExposureFit exposure_of(const Envelope& envelope) {
  const std::string where = envelope.file.empty() ? "exposure file" : envelope.file;
  if (envelope.kind != "exposure")
    throw InputError(fmt::format("{}: is a '{}' file; an 'exposure' file is needed here", where, envelope.kind));
  const FieldReader in(envelope.results, where + ": /results");
  const auto interval = [](const FieldReader& value) {
    return Interval{value.get<double>("estimate"), value.get<double>("lo"), value.get<double>("hi")};
  };
  ExposureFit fit;
  fit.n = in.get<std::size_t>("n");
  fit.kappa_ms = interval(in.object("kappa_ms"));
  fit.kappa_fitted = in.get<bool>("kappa_fitted");
  fit.r2 = in.maybe<double>("r2");
  fit.rmse_ms = in.get<double>("rmse_ms");
  for (const FieldReader& window : in.objects("windows"))
    fit.windows.push_back({window.get<int>("k"), interval(window.object("w_ms")), window.get<bool>("fitted")});
  for (const FieldReader& point : in.objects("points"))
    fit.points.push_back({point.get<std::string>("name"), point.get<double>("measured_ms"),
                          point.get<double>("predicted_ms"), point.maybe<double>("lo_ms"), point.maybe<double>("hi_ms")});
  return fit;
}

}  // namespace slacktier
