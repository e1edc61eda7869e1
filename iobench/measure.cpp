#include "iobench/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"

namespace slacktier {
namespace {

double us(Nanos t) { return static_cast<double>(t) / 1e3; }

void keep(PointSamples& point, const BatchTime& time, Nanos intended, Nanos origin) {
  for (std::size_t l = 0; l < point.pages.size(); ++l) {
    point.submit_us[l].push_back(us(time.layers[l].submit));
    point.t_us[l].push_back(us(time.layers[l].read));
    // What a caller that keeps to its schedule sees: a batch that began late because the one before was slow is later still.
    if (intended > 0) point.response_us[l].push_back(us(time.begin + time.layers[l].arrival - intended));
  }
  point.wall_us.push_back(us(time.end - time.begin));
  point.start_s.push_back(static_cast<double>(time.begin - origin) / 1e9);
  point.zero_pages += time.zero_pages;
}

double pages_of(const std::vector<LayerPages>& layers) {
  double pages = 0;
  for (const LayerPages& layer : layers) pages += layer.pages;
  return pages;
}

}  // namespace

std::vector<double> PointSamples::round_means(std::size_t layer) const {
  std::vector<double> means;
  std::size_t begin = 0;
  for (const std::size_t end : round_end) {
    if (end > begin)
      means.push_back(std::accumulate(t_us[layer].begin() + static_cast<std::ptrdiff_t>(begin),
                                      t_us[layer].begin() + static_cast<std::ptrdiff_t>(end), 0.0) /
                      static_cast<double>(end - begin));
    begin = end;
  }
  return means;
}

Measurement measure(Load& load, const std::vector<std::vector<LayerPages>>& points, const MeasureOptions& options) {
  Measurement result;
  for (const auto& pages : points) {
    PointSamples point;
    point.pages = pages;
    point.submit_us.resize(pages.size());
    point.t_us.resize(pages.size());
    point.response_us.resize(pages.size());
    result.points.push_back(std::move(point));
  }
  const Clock& clock = monotonic_clock();
  const Nanos origin = clock.now();
  const Nanos deadline = origin + static_cast<Nanos>(options.max_seconds * 1e9);
  const Nanos warm = origin + static_cast<Nanos>(options.max_seconds * 1e8);  // at most a tenth of the time warms up
  const std::uint32_t per_round =
      options.whole_time ? 50 : std::max(1u, (options.batches + options.rounds - 1) / options.rounds);
  std::mt19937_64 random(options.seed);
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::uint64_t batch = 0;
  std::vector<double> round_sums;  // of all points' mean T of their last layer
  bool late = false;
  Nanos intended = options.period > 0 ? clock.now() + options.period : 0;
  for (std::uint32_t round = 0; !late && !result.interrupted && !result.failure; ++round) {
    const bool warm_up = round == 0;
    std::shuffle(order.begin(), order.end(), random);
    double sum = 0;
    bool whole = true;
    for (const std::size_t p : order) {
      PointSamples& point = result.points[p];
      const bool is_long = pages_of(point.pages) > long_load * pages_of(points.front());
      const std::uint32_t batches = is_long ? 1 : warm_up ? std::min(per_round, 20u) : per_round;
      double point_sum = 0;
      std::uint32_t ran = 0;
      // Each point gets one batch in each round, however late it is.
      const auto go_on = [&] {
        if (options.stop && options.stop()) result.interrupted = true;
        late = late || (!warm_up && clock.now() > deadline);
        if (result.interrupted || (late && ran > 0)) return false;
        return ran < batches && !(warm_up && ran > 0 && clock.now() > warm);
      };
      const Nanos called = clock.now(), called_cpu = process_cpu_time();
      Nanos reading = 0, reading_cpu = 0;  // of what was kept: what was begun behind it is neither
      const auto take = [&](const BatchTime& time) {
        reading_cpu = process_cpu_time() - called_cpu;
        ++ran;
        point_sum += us(time.layers.back().arrival);
        if (!warm_up) keep(point, time, intended, origin);
      };
      try {
        if (options.period == 0) {
          if (go_on())
            load.run_back_to_back(point.pages, batch, batches, [&](const BatchTime& time) {
              reading = time.end - called;
              take(time);
              return go_on();
            });
        } else {
          for (; go_on(); intended += options.period) {
            const BatchTime time = load.run(point.pages, batch + ran, intended);
            reading += time.end - time.begin;
            take(time);
          }
        }
      } catch (const DeviceError&) {
        result.failure = std::current_exception();
      }
      batch += batches;
      if (!warm_up) {
        point.cycle_us += us(reading);
        point.cycle_cpu_us += us(reading_cpu);
      }
      if (!warm_up) point.round_end.push_back(point.wall_us.size());
      whole = whole && ran == batches;
      if (ran > 0 && !is_long) sum += point_sum / ran;
      if (options.progress)
        options.progress(std::min(1.0, std::max(options.whole_time ? 0.0 : static_cast<double>(round) / (options.rounds + 1),
                                                static_cast<double>(clock.now() - origin) / 1e9 / options.max_seconds)));
      if (result.interrupted || result.failure) break;
    }
    if (!warm_up && whole) round_sums.push_back(sum);
    if (round_sums.size() >= 3) {
      const auto [lo, hi] = std::minmax_element(round_sums.end() - 3, round_sums.end());
      result.steady = *hi - *lo <= options.steady_tolerance * *hi;
    }
    // When all rounds are done but the last three differ, it goes on until they do not or the time is up.
    if (!options.whole_time && round >= options.rounds && result.steady) break;
  }
  result.seconds = static_cast<double>(clock.now() - origin) / 1e9;
  for (PointSamples& point : result.points)
    for (const LayerPages& layer : point.pages) point.page_reads += std::uint64_t{layer.pages} * point.wall_us.size();
  if (late && !options.whole_time && !result.interrupted && !result.failure) {
    if (round_sums.size() < options.rounds)
      result.unmet = fmt::format("{} of {} rounds within {:.0f} s", round_sums.size(), options.rounds, options.max_seconds);
    else if (!result.steady)
      result.unmet = fmt::format("the last three rounds within {:.0f}% of each other in {:.0f} s",
                                 100 * options.steady_tolerance, options.max_seconds);
  }
  return result;
}

}  // namespace slacktier
