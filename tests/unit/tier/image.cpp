#include "tier/image.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"

using namespace slacktier;
using test::Scratch;
using test::small_engram;

namespace {

StageOptions options_for(std::vector<std::string> disks) {
  StageOptions options;
  options.disks = std::move(disks);
  options.threads = 3;
  return options;
}

// The contents of an image's disks, and its pages by the layout that image.hpp describes, independent of the code under
// test.
struct Contents {
  std::vector<std::string> disks;
  Contents(const Scratch& scratch, const std::vector<std::string>& names) {
    for (const std::string& name : names) disks.push_back(scratch.read(name));
  }
  std::string page(const ImageHeader& header, const ImageSegment& segment, std::uint64_t page) const {
    const std::uint64_t bytes = header.geometry.page_bytes;
    return disks[page % disks.size()].substr(segment.base + page / disks.size() * bytes, bytes);
  }
};

}  // namespace

TEST_CASE("a staged image holds every row at its place", "[image]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  for (const std::size_t disks : {1U, 3U}) {
    std::vector<std::string> names, paths;
    for (std::size_t d = 0; d < disks; ++d) {
      names.push_back(std::to_string(disks) + "-" + std::to_string(d) + ".img");
      paths.push_back(scratch.file(names.back()));
    }
    StageOptions options = options_for(paths);
    options.ranks = 4;
    options.only_ranks = {3, 1};
    options.seed = 5;
    const StageReport report = stage_image(spec, options);
    CHECK(report.written == report.bytes);
    const ImageHeader header = open_image(paths, spec);
    CHECK(report.bytes == header.page_bytes());
    CHECK(header.segments.size() == 4);
    CHECK(header.origin == "generated seed=5");
    CHECK_FALSE(header.scaled());
    const Contents contents(scratch, names);
    for (const ImageSegment& segment : header.segments) {
      CHECK(segment.base % 4096 == 0);
      CHECK(segment.stored_pages == segment.pages);
      const std::size_t layer = spec.layer_index(segment.layer);
      const Shard shard = make_shard(spec, layer, ShardMap::contiguous, 4, segment.rank);
      CHECK(segment.rows == shard.rows);
      const auto origin = generated_rows(spec, layer, shard, 5);
      std::vector<std::byte> row(spec.row_bytes);
      for (std::uint64_t local = 0; local < shard.rows; local += 37) {
        const std::string page = contents.page(header, segment, local / 15);
        REQUIRE(check_page(std::as_bytes(std::span(page)), local / 15, segment.image, header.nonce) == PageFault::none);
        origin->row(local, row.data());
        REQUIRE(std::memcmp(page.data() + local % 15 * 264, row.data(), 264) == 0);
      }
    }
    CHECK(verify_image(spec, paths, 0, {}).bad == 0);
    // The order in which disks are named does not matter.
    const std::vector<std::string> reversed(paths.rbegin(), paths.rend());
    CHECK(open_image(reversed, spec).paths == paths);
    CHECK(verify_image(spec, reversed, 50, {}).pages == 50);
  }
}

TEST_CASE("a scaled image keeps the geometry and folds the pages", "[image]") {
  const Scratch scratch;
  const TableSpec spec = load_table_spec("engram_v41");
  const std::vector<std::string> paths{scratch.file("a.img"), scratch.file("b.img")};
  StageOptions options = options_for(paths);
  options.ranks = 4;
  options.only_ranks = {3};
  options.max_bytes = 8 << 20;
  stage_image(spec, options);
  const ImageHeader header = open_image(paths, spec);
  CHECK(header.scaled());
  std::uint64_t bytes = 0;
  for (const std::string& path : paths) bytes += std::filesystem::file_size(path);
  CHECK(bytes <= options.max_bytes);
  CHECK(bytes > options.max_bytes - (1 << 16));
  const std::uint64_t share = ((8 << 20) - (2 << 20)) / 2 / 4096;
  for (const ImageSegment& segment : header.segments) {
    CHECK(segment.pages == header.geometry.pages(segment.rows));
    CHECK(segment.stored_pages == share);
    CHECK(segment.stored_pages % 2 == 0);
  }
  CHECK(header.segments[0].rows == 384006168 - 3 * std::uint64_t{96001542});
  // Stored page q holds the rows of page q: what a folded row asks for.
  const ImageSegment& segment = header.segment(14, 3);
  const PageFold fold{segment.stored_pages};
  const std::uint64_t local = 95'000'000, page = fold.page(local / 15);
  const Shard shard = make_shard(spec, 1, ShardMap::contiguous, 4, 3);
  std::vector<std::byte> row(264);
  generated_rows(spec, 1, shard, 1)->row(fold.row(local, header.geometry), row.data());
  const std::string stored = Contents(scratch, {"a.img", "b.img"}).page(header, segment, page);
  CHECK(std::memcmp(stored.data() + local % 15 * 264, row.data(), 264) == 0);
  CHECK(verify_image(spec, paths, 0, {}).bad == 0);

  options.max_bytes = (2 << 20) + 4096 * 3;
  CHECK_THROWS_WITH(plan_image(spec, options), contains_text("at least 2113536 are needed"));
}

TEST_CASE("small pages and odd tails", "[image]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 97);
  for (const std::uint32_t page_bytes : {512U, 1024U, 65536U}) {
    std::vector<std::string> paths;
    for (int d = 0; d < 3; ++d) paths.push_back(scratch.file(fmt::format("{}-{}.img", page_bytes, d)));
    StageOptions options = options_for(paths);
    options.page_bytes = page_bytes;
    stage_image(spec, options);
    const VerifyReport whole = verify_image(spec, paths, 0, {});
    std::uint64_t pages = 0;
    for (const ImageSegment& segment : open_image(paths, spec).segments) pages += segment.stored_pages;
    CHECK(whole.pages == pages);
    CHECK(whole.bad == 0);
    CHECK(verify_image(spec, paths, 7, {}).bad == 0);
    CHECK(std::filesystem::file_size(paths[0]) % 4096 == 0);
  }
  StageOptions options = options_for({scratch.file("x.img")});
  options.page_bytes = 512;
  TableSpec wide = spec;
  wide.row_bytes = 600;
  CHECK_THROWS_WITH(stage_image(wide, options), contains_text("600 bytes does not fit a page of 512"));
  CHECK_FALSE(std::filesystem::exists(scratch.file("x.img")));
}

TEST_CASE("verify names damaged pages and their faults", "[image]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  const std::vector<std::string> paths{scratch.file("a.img"), scratch.file("b.img")};
  stage_image(spec, options_for(paths));
  const ImageHeader header = open_image(paths, spec);
  const ImageSegment& segment = header.segment(14, 0);
  scratch.damage("b.img", segment.base + 4096 * 3 + 100);   // page 7: a record
  scratch.damage("a.img", segment.base + 4096 * 2 + 4064);  // page 4: its number
  const std::string zeros(4096, '\0');
  std::fstream(scratch.file("a.img"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(header.segment(1, 0).base))
      .write(zeros.data(), 4096);
  const VerifyReport report = verify_image(spec, paths, 0, {});
  CHECK(report.bad == 3);
  REQUIRE(report.first_bad.size() == 3);
  CHECK(report.first_bad[0] == fmt::format("{} at byte 1048576: layer 1 rank 0 page 0: zero (never written)", paths[0]));
  CHECK_THAT(report.first_bad[1], contains_text("layer 14 rank 0 page 4: misplaced"));
  CHECK_THAT(report.first_bad[2], contains_text("b.img") && contains_text("layer 14 rank 0 page 7: torn"));

  // A page that is whole but holds other rows: sealed anew after a change.
  std::string page = Contents(scratch, {"a.img", "b.img"}).page(header, segment, 9);
  page[264 * 2] ^= 1;
  seal_page(std::as_writable_bytes(std::span(page)), 9, segment.image, header.nonce);
  std::fstream(scratch.file("b.img"), std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(segment.base + 4096 * 4))
      .write(page.data(), 4096);
  CHECK_THAT(verify_image(spec, paths, 0, {}).first_bad[3], contains_text("page 9: record 2 differs from generated seed=1"));
}

TEST_CASE("progress reaches the end and may stop the work", "[image]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 3000);
  StageOptions options = options_for({scratch.file("a.img")});
  std::uint64_t last = 0, total = 0, calls = 0;
  options.progress = [&](std::uint64_t done, std::uint64_t all) {
    CHECK(done >= last);
    last = done;
    total = all;
    ++calls;
  };
  const StageReport report = stage_image(spec, options);
  CHECK((last == report.bytes && total == report.bytes && calls > 0));
  std::uint64_t pages = 0;
  const VerifyReport verified =
      verify_image(spec, options.disks, 0, [&](std::uint64_t done, std::uint64_t) { pages = done; });
  CHECK(pages == verified.pages);
  CHECK_THROWS_AS(verify_image(spec, options.disks, 0, [](std::uint64_t, std::uint64_t) { throw Interrupted(); }),
                  Interrupted);
}

TEST_CASE("plans are refused that cannot be", "[image]") {
  const Scratch scratch;
  const TableSpec spec = small_engram(scratch, 500);
  StageOptions options = options_for({scratch.file("a.img")});
  options.layers = {1, 2};
  CHECK_THROWS_WITH(plan_image(spec, options), contains_text("no layer 2"));
  options.layers = {14, 14};
  CHECK_THROWS_WITH(plan_image(spec, options), contains_text("layer 14 is named twice"));
  options.layers = {};
  options.only_ranks = {1};
  CHECK_THROWS_WITH(plan_image(spec, options), contains_text("rank 1 of 1"));
  options.ranks = 100'000;
  options.only_ranks = {99'999};
  CHECK_THROWS_WITH(plan_image(spec, options), contains_text("owns no row"));
  options.ranks = 4000;
  options.only_ranks = {};
  CHECK_THROWS_WITH(stage_image(small_engram(scratch, 1'000'000, "many"), options),
                    contains_text("do not fit an image's header"));
  CHECK_FALSE(std::filesystem::exists(scratch.file("a.img")));
  options.disks = {};
  CHECK_THROWS_AS(plan_image(spec, options), UsageError);
}
