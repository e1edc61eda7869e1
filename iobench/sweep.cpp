#include "iobench/sweep.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace slacktier {

std::vector<std::vector<LayerPages>> sweep_points(const std::vector<LayerPages>& full,
                                                  const std::vector<std::uint32_t>& sixteenths) {
  std::vector<std::vector<LayerPages>> points{full};
  const auto add = [&](std::vector<LayerPages> point) {
    if (std::find(points.begin(), points.end(), point) == points.end()) points.push_back(std::move(point));
  };
  const auto share = [](std::uint32_t pages, std::uint32_t part) {
    return pages == 0 ? 0 : std::max(1u, static_cast<std::uint32_t>(std::uint64_t{pages} * part / 16));
  };
  if (std::pow(static_cast<double>(sixteenths.size()), static_cast<double>(full.size())) <= 64) {
    std::vector<std::size_t> at(full.size(), 0);
    for (;;) {
      std::vector<LayerPages> point = full;
      for (std::size_t l = 0; l < full.size(); ++l) point[l].pages = share(full[l].pages, sixteenths[at[l]]);
      add(std::move(point));
      std::size_t l = 0;
      while (l < at.size() && ++at[l] == sixteenths.size()) at[l++] = 0;
      if (l == at.size()) break;
    }
    return points;
  }
  for (const std::uint32_t part : sixteenths) {
    std::vector<LayerPages> together = full;
    for (LayerPages& layer : together) layer.pages = share(layer.pages, part);
    add(together);
    for (std::size_t l = 0; l < full.size(); ++l) {
      std::vector<LayerPages> alone = full;
      alone[l].pages = share(full[l].pages, part);
      add(alone);
    }
  }
  return points;
}

}  // namespace slacktier
