#include "iobench/draw.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <random>

#include "platforms/error.hpp"

namespace slacktier {
namespace {

// splitmix64's finaliser (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

template <class T>
bool number(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

std::vector<LayerPages> parse_layer_pages(const std::string& option, const std::string& text) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("{} {}: {}; write LAYER:PAGES,…, such as 1:700,14:700", option, text, what));
  };
  std::vector<LayerPages> pages;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t colon = part.find(':');
    LayerPages layer;
    if (colon == std::string::npos || !number(part.substr(0, colon), layer.layer) || layer.layer < 0 ||
        !number(part.substr(colon + 1), layer.pages))
      refuse(fmt::format("'{}' is no pair of layer and pages", part));
    if (layer.pages > 1'000'000) refuse("at most 1000000 pages a layer and batch");
    for (const LayerPages& other : pages)
      if (other.layer == layer.layer) refuse(fmt::format("layer {} is given twice", layer.layer));
    pages.push_back(layer);
    begin = end + 1;
  }
  std::sort(pages.begin(), pages.end(), [](const auto& a, const auto& b) { return a.layer < b.layer; });
  return pages;
}

std::string to_string(const std::vector<LayerPages>& pages) {
  std::string text;
  for (const LayerPages& layer : pages) text += fmt::format("{}{}:{}", text.empty() ? "" : ",", layer.layer, layer.pages);
  return text;
}

void draw_pages(std::uint64_t seed, std::uint32_t rank, int layer, std::uint64_t batch, std::uint64_t pages,
                std::uint32_t count, std::vector<std::uint64_t>& out) {
  if (count > pages)
    throw UsageError(
        fmt::format("{} different pages of layer {} are wanted, the image (or --span) has {}", count, layer, pages));
  std::mt19937_64 random(mix(mix(mix(mix(seed) ^ rank) ^ static_cast<std::uint64_t>(layer)) ^ batch));
  out.clear();
  // Pages drawn so far, hashed, at most half full: an allocation a page would cost more than reading it from memory.
  std::vector<std::uint64_t> drawn(std::bit_ceil(std::size_t{2} * count + 2), UINT64_MAX);
  const std::size_t mask = drawn.size() - 1;
  while (out.size() < count) {
    const std::uint64_t page = random() % pages;
    std::size_t slot = (page * 0x9E3779B97F4A7C15u >> 20) & mask;
    while (drawn[slot] != UINT64_MAX && drawn[slot] != page) slot = (slot + 1) & mask;
    if (drawn[slot] == page) continue;
    drawn[slot] = page;
    out.push_back(page);
  }
}

}  // namespace slacktier
