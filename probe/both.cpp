#include "probe/both.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "platforms/clock.hpp"
#include "platforms/error.hpp"
#include "probe/device_steps.hpp"
#include "reports/exposure.hpp"

namespace slacktier {

BothResult measure_both(Device& device, ProbeModel& model, const WindowOptions& options,
                        const std::vector<std::pair<double, double>>& pairs, int steps_a_pair) {
  if (options.layers.size() != 2) throw UsageError("two layers are delayed at once: name two");
  WindowOptions one = options;
  if (!one.began) one.began = monotonic_clock().now();
  one.injectors.resize(1);
  DeviceSteps steps(device, model, one.layers, one.injectors, watchdog_of(one));
  const SearchResult search = search_windows(steps, search_settings(device, model, one));

  BothResult both;
  both.first_layer = one.layers[0];
  both.second_layer = one.layers[1];
  both.step_ms = search.step_ms;
  both.noise_ms = search.noise_ms;
  both.injector = one.injectors.front();
  for (const LayerEstimate& layer : search.layers)
    if (layer.status == WindowStatus::noisy || layer.status == WindowStatus::failed)
      throw CheckFailed(fmt::format("layer {}: {}", layer.layer, layer.reason));
  both.first_window_ms = search.layers[0].injectors[0].knee_ms;
  both.second_window_ms = search.layers[1].injectors[0].knee_ms;

  std::mt19937_64 random(options.seed);
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < pairs.size(); ++p) order.insert(order.end(), static_cast<std::size_t>(steps_a_pair), p);
  std::shuffle(order.begin(), order.end(), random);
  DriftingBaseline idle;
  std::vector<std::vector<std::pair<double, double>>> took(pairs.size());  // place, ms
  double place = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (options.stop && options.stop()) throw Interrupted();
    if (i % 2 == 0) idle.add(place++, steps.hooked(0, {}));
    const auto& [x1, x2] = pairs[order[i]];
    const LayerDelay delays[] = {{both.first_layer, x1}, {both.second_layer, x2}};
    took[order[i]].emplace_back(place++, steps.hooked(0, delays));
  }
  double eq1_squares = 0, sum_squares = 0;
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    std::vector<double> deltas;
    for (const auto& [at, ms] : took[p]) deltas.push_back(ms - idle.at(at));
    std::sort(deltas.begin(), deltas.end());
    BothDelayed row;
    row.first_ms = pairs[p].first;
    row.second_ms = pairs[p].second;
    row.measured_ms = median(deltas);
    // Of the median: order statistics half a normal deviation of ranks away from the middle.
    const double n = static_cast<double>(deltas.size()), reach = 0.98 * std::sqrt(n);
    const auto rank = [&](double at) { return deltas[static_cast<std::size_t>(std::clamp(std::round(at), 0.0, n - 1))]; };
    row.lo_ms = rank((n - 1) / 2 - reach);
    row.hi_ms = rank((n - 1) / 2 + reach);
    const double delays[] = {row.first_ms, row.second_ms}, windows[] = {both.first_window_ms, both.second_window_ms};
    row.eq1_ms = exposed_ms(delays, windows);
    row.sum_ms = sum_of_excesses_ms(delays, windows);
    eq1_squares += (row.measured_ms - row.eq1_ms) * (row.measured_ms - row.eq1_ms);
    sum_squares += (row.measured_ms - row.sum_ms) * (row.measured_ms - row.sum_ms);
    both.pairs.push_back(row);
  }
  both.eq1_rmse_ms = std::sqrt(eq1_squares / static_cast<double>(pairs.size()));
  both.sum_rmse_ms = std::sqrt(sum_squares / static_cast<double>(pairs.size()));
  return both;
}

}  // namespace slacktier
