#include "tier/pages.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {

static_assert(std::endian::native == std::endian::little, "pages are little-endian and are read in place");

PageGeometry make_page_geometry(std::uint32_t page_bytes, std::uint32_t row_bytes) {
  if (!std::has_single_bit(page_bytes) || page_bytes < 512 || page_bytes > 65536) {
    throw UsageError(fmt::format("page size {}: use a power of two from 512 to 65536 bytes", page_bytes));
  }
  const std::uint32_t room = page_bytes - static_cast<std::uint32_t>(sizeof(PageTrailer));
  if (row_bytes == 0) throw UsageError("a record of 0 bytes cannot be stored in pages");
  if (row_bytes > room) {
    throw UsageError(
        fmt::format("a record of {} bytes does not fit a page of {}: {} are left beside the trailer; use larger pages",
                    row_bytes, page_bytes, room));
  }
  return {page_bytes, row_bytes, room / row_bytes};
}

std::uint64_t page_stamp(std::uint64_t image, std::uint64_t page, std::uint64_t nonce) {
  return splitmix64(splitmix64(splitmix64(nonce) ^ image) ^ page);
}

void seal_page(std::span<std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce) {
  PageTrailer trailer{number, image, page_stamp(image, number, nonce), 0};
  std::byte* const at = page.data() + page.size() - sizeof trailer;
  std::memcpy(at, &trailer, sizeof trailer);
  trailer.checksum = XXH3_64bits(page.data(), page.size() - sizeof trailer.checksum);
  std::memcpy(at, &trailer, sizeof trailer);
}

const char* to_string(PageFault fault) {
  switch (fault) {
    case PageFault::none:
      return "none";
    case PageFault::foreign:
      return "foreign (page of another image or segment)";
    case PageFault::misplaced:
      return "misplaced (another page of this segment)";
    case PageFault::stale:
      return "stale (page of an earlier staging)";
    case PageFault::torn:
      return "torn (checksum does not match)";
    case PageFault::zero:
      return "zero (never written)";
    case PageFault::io:
      return "unreadable";
    case PageFault::cut:
      return "cut short (the file ends inside it)";
  }
  return "unknown";
}

PageFault check_stamp(std::span<const std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce) {
  PageTrailer trailer;
  std::memcpy(&trailer, page.data() + page.size() - sizeof trailer, sizeof trailer);
  if (trailer.page == number && trailer.image == image && trailer.stamp == page_stamp(image, number, nonce)) {
    return PageFault::none;
  }
  if (trailer.page == 0 && trailer.image == 0 && trailer.stamp == 0 && trailer.checksum == 0) return PageFault::zero;
  if (trailer.image != image) return PageFault::foreign;
  if (trailer.page != number) return PageFault::misplaced;
  return PageFault::stale;
}

PageFault check_page(std::span<const std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce) {
  const PageFault fault = check_stamp(page, number, image, nonce);
  if (fault != PageFault::none) return fault;
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, page.data() + page.size() - sizeof checksum, sizeof checksum);
  return checksum == XXH3_64bits(page.data(), page.size() - sizeof checksum) ? PageFault::none : PageFault::torn;
}

}  // namespace slacktier
