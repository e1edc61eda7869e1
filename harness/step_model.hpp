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
  Nanos lead_time = 0;            // from t = 0 until layer 0 needs its rows: 0 for a table that is part of the input
  std::string label;              // where the times come from, for a table's head
  bool measured_here = false;     // false: assumed; results carry a warning

  Nanos step() const;
  // W_k: from t = 0 until layer k needs its rows, when nothing waits. Layer 0's may be zero: such a table is read before
  // anything runs, and every read of it shows.
  Nanos window(int layer) const;
};

// DeepSeek-V4.1 on 4 x H200 at B = 128, derived from the paper's windows and step.
StepModel paper_v41_model();

// `layers` equal layers that together take `step`: what to assume of a model whose windows nobody has measured. Throws
// InputError for no layers or no time.
StepModel uniform_model(int layers, Nanos step);

// Layer times from a windows file: W_k of its measured layers, linear between them, the step's end as the last point. W_0 is
// zero unless the file has it.
// `layers` are the layers that read tables: each must have a window. Of several batches in the file the one measured at
// `batch` counts; a single other one is used and named in the label. Throws InputError naming file and field.
StepModel model_from_windows(const Envelope& windows, const std::vector<int>& layers, std::uint32_t batch);

}  // namespace slacktier
