// The model around the tier: its layers and their times. What the tier must hide its reads behind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platforms/clock.hpp"
#include "reports/results.hpp"

namespace slacktier {

struct StepModel {
  std::string name;
  std::vector<Nanos> layer_time;  // time of each layer of the model, in depth order
  std::string label;              // where the times come from, for a table's head
  bool measured_here = false;     // false: assumed; results carry a warning

  Nanos step() const;
  // W_k: from t = 0 until layer k needs its rows, when nothing waits.
  Nanos window(int layer) const;
};

// DeepSeek-V4.1 on 4 x H200 at B = 128, derived from the paper's windows and step.
StepModel paper_v41_model();

// Layer times from a windows file: W_k of its measured layers, linear between them, the step's end as the last point.
// `layers` are the layers that read tables: each must have a window. Of several batches in the file the one measured at
// `batch` counts; a single other one is used and named in the label. Throws InputError naming file and field.
StepModel model_from_windows(const Envelope& windows, const std::vector<int>& layers, std::uint32_t batch);

}  // namespace slacktier
