#include "iobench/draw.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("layers and pages are read as written, or refused with the form", "[draw]") {
  const auto pages = parse_layer_pages("--pages", "14:700,1:20");
  REQUIRE(pages.size() == 2);
  CHECK(pages[0] == LayerPages{1, 20});
  CHECK(pages[1] == LayerPages{14, 700});
  CHECK(to_string(pages) == "1:20,14:700");
  for (const char* bad : {"", "1", "1:", ":5", "1:x", "1:5,", "1:5,1:6", "-1:5", "1:-5", "1:2000000", "1:5;2:6", "1:5 "}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_layer_pages("--pages", bad), UsageError);
  }
}

// Golden: the same on every machine and in every version, or results of different versions read different pages.
TEST_CASE("equal seeds draw equal pages", "[draw]") {
  std::vector<std::uint64_t> pages;
  draw_pages(1, 0, 14, 0, 262'144, 8, pages);
  CHECK(pages == std::vector<std::uint64_t>{96376, 18584, 231400, 77168, 187621, 187971, 56536, 58460});
  draw_pages(7, 3, 1, 1000, 13'107'200, 5, pages);
  CHECK(pages == std::vector<std::uint64_t>{6180365, 6136152, 6647812, 4163751, 3643393});
}

TEST_CASE("a batch's pages are different ones, and differ from other batches', ranks' and layers'", "[draw]") {
  std::vector<std::uint64_t> first, other;
  draw_pages(1, 0, 1, 0, 1000, 1000, first);
  CHECK(std::set<std::uint64_t>(first.begin(), first.end()).size() == 1000);
  CHECK(*std::max_element(first.begin(), first.end()) == 999);
  for (const auto& [seed, rank, layer, batch] :
       {std::tuple{2u, 0u, 1, 0u}, std::tuple{1u, 1u, 1, 0u}, std::tuple{1u, 0u, 2, 0u}, std::tuple{1u, 0u, 1, 1u}}) {
    draw_pages(seed, rank, layer, batch, 1000, 1000, other);
    CHECK(other != first);
  }
  CHECK_THROWS_AS(draw_pages(1, 0, 1, 0, 5, 6, other), UsageError);
}
