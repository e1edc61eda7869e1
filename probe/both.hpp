// Two layers of a captured step delayed at once, against the exposure model.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "probe/windows.hpp"

namespace slacktier {

// Two layers delayed at once, and what the exposure model makes of their single windows. Times in ms.
struct BothDelayed {
  double first_ms = 0, second_ms = 0;  // the delays
  double measured_ms = 0, lo_ms = 0, hi_ms = 0;
  double eq1_ms = 0, sum_ms = 0;  // d1 + d2 of Eq. 1; the sum of what each exceeds its own window by
};
struct BothResult {
  int first_layer = 0, second_layer = 0;
  double step_ms = 0, noise_ms = 0;
  double first_window_ms = 0, second_window_ms = 0;  // as seen in the hooked step, by the same injector
  std::string injector;
  std::vector<BothDelayed> pairs;
  double eq1_rmse_ms = 0, sum_rmse_ms = 0;
};
// `options.layers` names two layers. Of the injectors the first counts.
BothResult measure_both(Device& device, ProbeModel& model, const WindowOptions& options,
                        const std::vector<std::pair<double, double>>& pairs, int steps_a_pair);

}  // namespace slacktier
