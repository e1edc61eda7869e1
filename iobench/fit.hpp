// T_k as a line in the pages of all layers, by least squares.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "iobench/measure.hpp"
#include "reports/reads_file.hpp"

namespace slacktier {

// Fits layer k's mean T_k (us) over those of the points in which it reads pages. Layers whose pages do not vary there are
// left out of b. Throws UsageError when fewer points than parameters + 1 are left, or pages vary only together, naming what
// to vary.
ReadFit fit_read_time(int k, std::span<const PointSamples> points);

// The pages of a point by layer.
std::map<int, std::int64_t> pages_by_layer(const std::vector<LayerPages>& pages);

}  // namespace slacktier
