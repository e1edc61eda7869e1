// Read times as a figure.
#pragma once

#include "reports/plot.hpp"
#include "reports/results.hpp"

namespace slacktier {

// T_k in ms over layer k's own pages, of a reads file: the mean of each measured load, the fitted line with the other
// layers' pages at their most, and each layer's window as a level. Throws InputError for another kind of file.
Plot read_time_plot(const Envelope& reads);

}  // namespace slacktier
