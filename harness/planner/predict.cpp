#include "harness/planner/predict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>

#include "reports/probability.hpp"

namespace slacktier::planner {
namespace {

constexpr std::size_t steps = 256;
using Draw = std::array<double, steps>;

// Standard normal numbers, one of each stratum in an order of its own: the same for every candidate, so that candidates
// differ by what they are, not by luck.
const Draw& normal_draw(std::size_t which) {
  thread_local std::map<std::size_t, Draw> draws;
  const auto found = draws.find(which);
  if (found != draws.end()) return found->second;
  Draw draw;
  for (std::size_t i = 0; i < steps; ++i) draw[i] = normal_quantile((static_cast<double>(i) + 0.5) / steps);
  std::mt19937_64 random(1000 + which);
  for (std::size_t i = steps - 1; i > 0; --i) std::swap(draw[i], draw[random() % (i + 1)]);
  return draws.emplace(which, draw).first->second;
}

double p99_of(std::vector<double>& values) {
  const auto at = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(values.size()))) - 1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

// One layer that reads, on one rank.
struct Reading {
  std::size_t layer = 0;
  const ReadLine* line = nullptr;
  std::vector<std::pair<std::size_t, double>> b;  // of layers on the same offer: place in the layers, ms per page
};

// A line is measured with as many pages on every rank that shares the disk. Where they differ, a rank's pages count by what
// the disk serves until the rank has them: it serves ranks evenly, so each other has had as many by then, or all of its own,
// later layers' too. `pages` is [rank][layer], `upto` the layers whose pages come before, this one's with them, and `all`
// those on the disk.
double served(const std::vector<std::vector<Draw>>& pages, std::size_t step, std::size_t rank,
              const std::vector<std::size_t>& upto, const std::vector<std::size_t>& all) {
  const auto sum = [&](std::size_t r, const std::vector<std::size_t>& layers) {
    double total = 0;
    for (const std::size_t l : layers) total += pages[r][l][step];
    return total;
  };
  const double own = sum(rank, upto);
  if (own <= 0) return 1;
  double total = 0;
  for (std::size_t r = 0; r < pages.size(); ++r) total += std::min(sum(r, all), own);
  return total / static_cast<double>(pages.size()) / own;
}

double window_of(const PlanLayer& layer, const Shift& shift) {
  return layer.window_ms +
         (shift.windows > 0 ? layer.hi_ms - layer.window_ms : layer.window_ms - layer.lo_ms) * shift.windows;
}

// What batches that the device holds for long add to the mean step: they seldom come, and outlast every window. A device
// that halts delays all layers on it, so the layer that is latest then counts, once. `arrived` is [reading][step].
double rarely_exposed(const PlanProblem& problem, const std::vector<Reading>& readings, const std::vector<double>& arrived,
                      const std::vector<double>& latest, const Shift& shift) {
  double share = 0;
  for (const Reading& reading : readings) {
    const ReadLine& line = *reading.line;
    const double to = shift.rare > 0 ? line.rare_hi - line.rare : line.rare - line.rare_lo;
    share = std::max(share, line.rare + shift.rare * to);
  }
  if (share <= 0) return 0;
  double exposed = 0;
  for (std::size_t i = 0; i < steps; ++i) {
    double most = latest[i];
    for (std::size_t g = 0; g < readings.size(); ++g)
      if (const double at = arrived[g * steps + i]; at > 0)
        most = std::max(most, at + readings[g].line->rare_ms - window_of(problem.layers[readings[g].layer], shift));
    exposed += (most - latest[i]) / steps;
  }
  return share * exposed;
}

}  // namespace

Prediction predict(const PlanProblem& problem, const Candidate& candidate, const Shift& shift) {
  Prediction result;
  result.p99_known = problem.p99_known;
  const std::size_t n = problem.layers.size();
  result.read_ms.assign(n, 0.0);
  result.late_ms.assign(n, 0.0);
  double resident_ms = 0;
  std::vector<Reading> readings;
  for (std::size_t l = 0; l < n; ++l) {
    const LayerChoice& choice = candidate.layers[l];
    if (!choice.reads) {
      resident_ms += problem.residents[choice.offer].cost_ms;
      continue;
    }
    const ReadOffer& offer = problem.reads[choice.offer];
    result.any_read = true;
    result.p99_known = result.p99_known && offer.p99_known;
    Reading reading;
    reading.layer = l;
    reading.line = &offer.lines.at(problem.layers[l].k);
    for (std::size_t other = 0; other < n; ++other) {
      if (!candidate.layers[other].reads || candidate.layers[other].offer != choice.offer) continue;
      const auto b = reading.line->b_ms.find(problem.layers[other].k);
      // A page more never arrives earlier: a negative slope is noise of the fit.
      if (b != reading.line->b_ms.end() && b->second > 0) reading.b.emplace_back(other, b->second);
    }
    readings.push_back(std::move(reading));
  }
  const double kappa = problem.kappa_ms.estimate + (shift.kappa > 0 ? problem.kappa_ms.hi - problem.kappa_ms.estimate
                                                                    : problem.kappa_ms.estimate - problem.kappa_ms.lo) *
                                                       shift.kappa;
  const double always = (result.any_read ? kappa : 0) + resident_ms;
  if (readings.empty()) {
    result.mean_ms = result.p99_ms = result.lo_ms = result.hi_ms = always;
    return result;
  }

  // Pages of every layer, rank and step.
  const std::size_t ranks = problem.layers.front().misses[candidate.shard_map].size();
  std::vector<double> latest(steps, 0.0);                // the step's exposure
  std::vector<double> arrived(readings.size() * steps);  // of the slowest rank
  std::vector<std::vector<Draw>> pages(ranks, std::vector<Draw>(n));
  for (std::size_t r = 0; r < ranks; ++r)
    for (const Reading& reading : readings) {
      const MissLine& line = problem.layers[reading.layer].misses[candidate.shard_map][r];
      const MissLinePoint at = pages_at(line, candidate.layers[reading.layer].cache_rows);
      const Draw& z = normal_draw(2 * reading.layer);
      const double mean = std::max(0.0, at.pages + shift.pages * at.error);
      for (std::size_t i = 0; i < steps; ++i)
        pages[r][reading.layer][i] = problem.read_factor * std::max(0.0, mean + at.spread * z[i]);
      const auto range = reading.line->range.find(problem.layers[reading.layer].k);
      const double total = problem.read_factor * mean;
      if (range != reading.line->range.end() && total >= 0.5 &&
          (total < range->second.first || total > range->second.second))
        result.extrapolates = true;
    }
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t g = 0; g < readings.size(); ++g) {
      const Reading& reading = readings[g];
      const LayerChoice& choice = candidate.layers[reading.layer];
      const bool shared = ranks > 1 && static_cast<std::size_t>(problem.reads[choice.offer].ranks_on_disk) == ranks;
      std::vector<std::size_t> upto, all;
      for (const Reading& other : readings)
        if (candidate.layers[other.layer].offer == choice.offer) all.push_back(other.layer);
      for (const std::size_t other : all)
        if (other <= reading.layer) upto.push_back(other);
      const Draw& z = normal_draw(2 * reading.layer + 1);
      double* const to = arrived.data() + g * steps;
      double mean_read = 0;
      for (std::size_t i = 0; i < steps; ++i) {
        if (pages[r][reading.layer][i] < 0.5) continue;
        double t = reading.line->a_ms + shift.reads * reading.line->error_ms;
        const double share = shared ? served(pages, i, r, upto, all) : 1;
        for (const auto& [other, b] : reading.b) t += b * share * pages[r][other][i];
        t = std::max(0.0, t) * std::max(0.0, 1 + reading.line->spread * z[i]);
        mean_read += t / steps;
        to[i] = std::max(to[i], problem.resolve_ms + t);
      }
      result.read_ms[reading.layer] = std::max(result.read_ms[reading.layer], mean_read);
    }
  double least_headroom = -1e300;
  for (std::size_t g = 0; g < readings.size(); ++g) {
    const PlanLayer& layer = problem.layers[readings[g].layer];
    const double window = window_of(layer, shift);
    double late = 0;
    for (std::size_t i = 0; i < steps; ++i) {
      const double over = arrived[g * steps + i] - window;
      latest[i] = std::max(latest[i], over);
      late += over / steps;
    }
    result.late_ms[readings[g].layer] = late;
    if (late > least_headroom) least_headroom = late, result.binding = readings[g].layer;
  }
  for (const double exposed : latest) result.mean_ms += exposed / steps;
  result.mean_ms += rarely_exposed(problem, readings, arrived, latest, shift);
  result.mean_ms += always;
  // The step's own spread is independent of the reads': p99 of both together, less the baseline's.
  const Draw& z = normal_draw(1'000'001);
  std::vector<double> together(steps), alone(steps);
  for (std::size_t i = 0; i < steps; ++i) {
    alone[i] = problem.step_spread_ms * z[i];
    together[i] = alone[i] + latest[i];
  }
  result.p99_ms = p99_of(together) - p99_of(alone) + always;
  result.lo_ms = result.hi_ms = result.mean_ms;
  return result;
}

void add_interval(const PlanProblem& problem, const Candidate& candidate, Prediction& prediction) {
  if (!prediction.any_read) return;
  // Each source of uncertainty on its own; independent ones add in squares.
  double up = problem.model_error_ms * problem.model_error_ms, down = up;
  for (int source = 0; source < 5; ++source) {
    Shift more, less;
    double* const of_more[] = {&more.windows, &more.reads, &more.pages, &more.kappa, &more.rare};
    double* const of_less[] = {&less.windows, &less.reads, &less.pages, &less.kappa, &less.rare};
    *of_more[source] = source == 0 ? -1 : 1;  // a shorter window costs more
    *of_less[source] = source == 0 ? 1 : -1;
    const double worse = predict(problem, candidate, more).mean_ms - prediction.mean_ms;
    const double better = prediction.mean_ms - predict(problem, candidate, less).mean_ms;
    up += std::max(0.0, worse) * std::max(0.0, worse);
    down += std::max(0.0, better) * std::max(0.0, better);
  }
  prediction.hi_ms = prediction.mean_ms + std::sqrt(up);
  prediction.lo_ms = prediction.mean_ms - std::sqrt(down);
}

}  // namespace slacktier::planner
