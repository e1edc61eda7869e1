// A `windows` file as tables and as a figure.
#pragma once

#include <vector>

#include "reports/plot.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

// One table a batch.
std::vector<Table> windows_tables(const Envelope& envelope);
// Files beside each other, normalised: the slope of W_k / step over k / L, the paper's 0.85 to 0.92 beside it.
Table compare_table(const std::vector<Envelope>& files);
// W_k over k; of several results (or when asked for) both normalised, by the step and by the number of layers.
Plot windows_plot(const std::vector<Envelope>& files, bool normalised);

}  // namespace slacktier
