#include "tier/pages.hpp"

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "platforms/error.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("records per page", "[pages]") {
  CHECK(make_page_geometry(4096, 264).rows_per_page == 15);
  CHECK(make_page_geometry(4096, 320).rows_per_page == 12);
  CHECK(make_page_geometry(512, 480).rows_per_page == 1);
  const PageGeometry g = make_page_geometry(4096, 264);
  CHECK(g.pages(0) == 0);
  CHECK(g.pages(15) == 1);
  CHECK(g.pages(16) == 2);
}

TEST_CASE("what does not fit a page is refused", "[pages]") {
  CHECK_THROWS_WITH(make_page_geometry(512, 481), contains_text("481 bytes") && contains_text("480 are left"));
  CHECK_THROWS_WITH(make_page_geometry(4096, 4096), contains_text("does not fit"));
  CHECK_THROWS_AS(make_page_geometry(4096, 0), UsageError);
  for (const std::uint32_t bytes : {0U, 256U, 4000U, 131072U}) CHECK_THROWS_AS(make_page_geometry(bytes, 16), UsageError);
}

TEST_CASE("a scaled image folds pages, not records", "[pages]") {
  const PageGeometry g = make_page_geometry(4096, 264);
  const PageFold fold{10};
  CHECK(fold.page(9) == 9);
  CHECK(fold.page(23) == 3);
  CHECK(fold.row(23 * 15 + 7, g) == 3 * 15 + 7);
  CHECK(fold.row(4 * 15 + 14, g) == 4 * 15 + 14);
}

TEST_CASE("a page's faults are told apart", "[pages]") {
  std::vector<std::byte> page(4096);
  for (std::size_t i = 0; i < 3960; ++i) page[i] = static_cast<std::byte>(i * 31 + 7);
  const std::uint64_t image = 0xABCDEF, nonce = 99;
  CHECK(check_page(page, 5, image, nonce) == PageFault::zero);
  seal_page(page, 5, image, nonce);
  CHECK(check_stamp(page, 5, image, nonce) == PageFault::none);
  CHECK(check_page(page, 5, image, nonce) == PageFault::none);
  CHECK(check_page(page, 6, image, nonce) == PageFault::misplaced);
  CHECK(check_page(page, 5, image + 1, nonce) == PageFault::foreign);
  CHECK(check_page(page, 5, image, nonce + 1) == PageFault::stale);

  // A flipped bit anywhere is seen by the full check, and by the quick one only in the trailer's first three fields.
  for (std::size_t at : {std::size_t{0}, std::size_t{2048}, std::size_t{4000}, std::size_t{4063}, std::size_t{4095}}) {
    auto torn = page;
    torn[at] ^= std::byte{1};
    CHECK(check_page(torn, 5, image, nonce) == PageFault::torn);
    CHECK(check_stamp(torn, 5, image, nonce) == PageFault::none);
  }
  for (const PageFault fault : {PageFault::none, PageFault::foreign, PageFault::misplaced, PageFault::stale, PageFault::torn,
                                PageFault::zero, PageFault::io}) {
    CHECK(std::strlen(to_string(fault)) > 0);
  }
}

TEST_CASE("stamps differ by image, page and staging", "[pages]") {
  std::set<std::uint64_t> stamps;
  for (std::uint64_t image = 0; image < 10; ++image) {
    for (std::uint64_t page = 0; page < 10; ++page) {
      for (std::uint64_t nonce = 0; nonce < 10; ++nonce) stamps.insert(page_stamp(image, page, nonce));
    }
  }
  CHECK(stamps.size() == 1000);
}
