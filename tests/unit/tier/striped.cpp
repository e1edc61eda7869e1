// One table of a million rows on one disk and on four: the same rows, the same descriptors.
#include <cstdint>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/unit/tier/live_tier.hpp"

using namespace slacktier;
using namespace slacktier::testing;
using Live = LiveTier;

TEST_CASE("a million rows on four disks are the rows of one disk, lookup by lookup", "[striped]") {
  const ScratchFolder folder;
  std::ofstream(folder.file("million.json"))
      << R"({"name": "million", "hash": "engram", "record": "fp8_e4m3_block32", "seed": 3,
    "vocab_size": 100000, "engram_layer_ids": [1, 3], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 256,
    "engram_vocab_size": 125000, "compressed_vocab_size": 90000, "engram_pad_token_id": 0})";
  const TableSpec spec = load_table_spec(folder.file("million.json"));
  const auto one = stage_small(folder, spec, 1), four = stage_small(folder, spec, 4);
  std::uint64_t rows = 0;
  for (const auto& segment : read_image_header(one).segments) rows += segment.rows;
  REQUIRE(rows >= 1'000'000);
  const auto device = open_device("cpu");
  for (const std::string& source : disk_source_names()) {
    INFO(source);
    TierOptions options;
    options.max_tokens = 128;
    options.verify_checksum = true;
    Live single(*device, spec, {on(source, one, 2000), on(source, one, 0)}, options);
    Live striped(*device, spec, {on(source, four, 2000, 2), on(source, four, 0, 3)}, options);
    std::uint64_t hits = 0;
    for (int s = 0; s < 8; ++s) {
      single.draw(s < 4 ? 90'000 : 8);
      striped.context = single.context;
      striped.active = single.active;
      single.step();
      for (const auto& layer : striped.step().layers) {
        REQUIRE(layer.status == StepStatus::ok);
        hits += layer.counts.hits;
      }
      for (std::size_t l = 0; l < 2; ++l) {
        const auto expected = single.tier->core(l).descriptors(), got = striped.tier->core(l).descriptors();
        REQUIRE(expected.size() == got.size());
        for (std::size_t i = 0; i < got.size(); ++i) REQUIRE(got[i].bits == expected[i].bits);
      }
    }
    REQUIRE(hits > 0);
    for (const Live* live : {&single, &striped}) {
      REQUIRE(live->checks.mismatches == 0);
      REQUIRE(live->checks.undelivered == 0);
      REQUIRE(live->checks.pages > 3000);
    }
  }
}
