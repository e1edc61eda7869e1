// Which pages a batch reads: random, seeded, no page twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace slacktier {

// Pages per rank of each layer that a step reads, in depth order of the layers.
struct LayerPages {
  int layer = 0;
  std::uint32_t pages = 0;
  bool operator==(const LayerPages&) const = default;
};

// "1:700,14:700". Throws UsageError naming `option` and the form; layers must be different.
std::vector<LayerPages> parse_layer_pages(const std::string& option, const std::string& text);
std::string to_string(const std::vector<LayerPages>& pages);

// `count` different pages of [0, pages) for one batch, in the order in which they are read. Equal arguments give equal
// pages, on every machine: std::mt19937_64 seeded by a mix of the arguments. Throws UsageError when count > pages.
void draw_pages(std::uint64_t seed, std::uint32_t rank, int layer, std::uint64_t batch, std::uint64_t pages,
                std::uint32_t count, std::vector<std::uint64_t>& out);

}  // namespace slacktier
