// Rows to pages: fixed-size records, none straddling a page, and the trailer that proves what a page is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace slacktier {

// The last 32 bytes of every page, little-endian.
struct PageTrailer {
  std::uint64_t page = 0;      // page number within its layer's shard, as stored
  std::uint64_t image = 0;     // id of the image and segment (layer, rank) that the page belongs to
  std::uint64_t stamp = 0;     // page_stamp(image, page, staging nonce): wrong on pages of an earlier staging
  std::uint64_t checksum = 0;  // XXH3-64 of the page's bytes before this field
};
static_assert(sizeof(PageTrailer) == 32);

struct PageGeometry {
  std::uint32_t page_bytes = 4096;
  std::uint32_t row_bytes = 0;
  std::uint32_t rows_per_page = 0;  // (page_bytes - 32) / row_bytes

  std::uint64_t pages(std::uint64_t rows) const { return (rows + rows_per_page - 1) / rows_per_page; }
};

// Throws UsageError when page_bytes is not a power of two from 512 to 65,536, or one record does not fit.
PageGeometry make_page_geometry(std::uint32_t page_bytes, std::uint32_t row_bytes);

// Records of a page as bits: bit r for record r, bit 63 for all from the 64th on. All bits: the whole page.
inline constexpr std::uint64_t whole_page = ~std::uint64_t{0};
inline constexpr std::uint64_t record_bit(std::uint32_t record) { return std::uint64_t{1} << (record < 63 ? record : 63); }

// Calls run(offset, bytes) for each stretch of a page that holds such records, neighbours as one, and for the trailer.
template <class Run>
void for_records(std::uint64_t records, const PageGeometry& g, Run&& run) {
  const auto trailer = static_cast<std::uint32_t>(sizeof(PageTrailer));
  for (std::uint32_t r = 0; r < g.rows_per_page;) {
    if ((records & record_bit(r)) == 0) {
      ++r;
      continue;
    }
    const std::uint32_t first = r;
    while (r < g.rows_per_page && (records & record_bit(r)) != 0) ++r;
    run(std::size_t{first} * g.row_bytes, std::size_t{r - first} * g.row_bytes);
  }
  run(std::size_t{g.page_bytes} - trailer, std::size_t{trailer});
}

// Where a row lies when the image holds fewer pages than the table (a scaled run): page mod stored_pages, same record.
// With stored_pages >= pages of the table nothing folds. All row origins and checks use the folded row.
struct PageFold {
  std::uint64_t stored_pages = 0;
  std::uint64_t page(std::uint64_t page) const { return page % stored_pages; }
  std::uint64_t row(std::uint64_t row, const PageGeometry& g) const {
    return page(row / g.rows_per_page) * g.rows_per_page + row % g.rows_per_page;
  }
};

std::uint64_t page_stamp(std::uint64_t image, std::uint64_t page, std::uint64_t nonce);

// Writes the trailer, checksum included, of a page whose records are in place.
void seal_page(std::span<std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce);

enum class PageFault : std::uint8_t { none, foreign, misplaced, stale, torn, zero, io, cut };
const char* to_string(PageFault fault);

// What is checked inside timed regions: number, image and stamp. `zero` when the trailer is all zeros.
PageFault check_stamp(std::span<const std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce);
// The stamp and the full checksum (`torn`).
PageFault check_page(std::span<const std::byte> page, std::uint64_t number, std::uint64_t image, std::uint64_t nonce);

}  // namespace slacktier
