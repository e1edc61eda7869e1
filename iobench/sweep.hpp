// Which loads a sweep measures.
#pragma once

#include <cstdint>
#include <vector>

#include "iobench/draw.hpp"

namespace slacktier {

// All combinations of the shares (numerator / 16) of each layer's pages, so that the layers' parts in T can be told apart;
// with more than 64 combinations only one layer at a time differs from the full load, and all together. The full load is
// among them and comes first.
std::vector<std::vector<LayerPages>> sweep_points(const std::vector<LayerPages>& full,
                                                  const std::vector<std::uint32_t>& sixteenths);

}  // namespace slacktier
