#include "tier/table.hpp"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/golden.hpp"
#include "tier/primes.hpp"

using namespace slacktier;

namespace {

std::vector<std::uint64_t> head_rows(const LayerTable& table) {
  std::vector<std::uint64_t> rows;
  for (std::size_t c = 0; c + 1 < table.head_offset.size(); ++c)
    rows.push_back(table.head_offset[c + 1] - table.head_offset[c]);
  return rows;
}

const std::string demo = R"({
  "name": "demo", "hash": "engram", "record": "fp8_e4m3_block32",
  "engram_layer_ids": [1, 15], "engram_max_ngram_size": 3, "engram_n_heads": 8, "engram_head_dim": 64,
  "engram_vocab_size": [646400, 646400], "engram_pad_token_id": 2,
  "vocab_size": 129280, "compressed_vocab_size": 98627, "seed": 0
})";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TableSpec load_text(const std::string& text) {
  const std::string path = (std::filesystem::temp_directory_path() / "slacktier_table_test.json").string();
  std::ofstream(path) << text;
  return load_table_spec(path);
}

std::string error_of(const std::string& text) {
  try {
    load_text(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the V4.1 table is derived from its configuration", "[table]") {
  const TableSpec spec = load_table_spec("engram_v41");
  CHECK(spec.row_bytes == 264);
  CHECK(spec.row_values == 256);
  CHECK(spec.rows_per_token() == 24);
  CHECK(spec.max_ngram == 4);
  CHECK(spec.vocabulary == 99092);
  CHECK(spec.raw_vocabulary == 129280);
  CHECK(spec.pad == 2);
  CHECK(spec.segment_end == -1);
  REQUIRE(spec.layers.size() == 2);
  CHECK(spec.layers[0].layer == 1);
  CHECK(spec.layers[1].layer == 14);
  CHECK(spec.layers[0].rows == 384006168);
  CHECK(spec.layers[1].rows == 384016682);
  CHECK(spec.layers[0].multipliers ==
        std::vector<std::uint64_t>{76632096046245, 4839876093313, 35959672319349, 73987337458391});
  CHECK(spec.layers[1].multipliers ==
        std::vector<std::uint64_t>{67716810739261, 51510806800915, 30921347202721, 82619226485591});
  auto primes = head_rows(spec.layers[0]);
  const auto second = head_rows(spec.layers[1]);
  primes.insert(primes.end(), second.begin(), second.end());
  CHECK(primes == std::vector<std::uint64_t>(golden::engram_primes.begin(), golden::engram_primes.end()));
  for (std::size_t c = 0; c < 24; ++c) CHECK(spec.order[c] == static_cast<int>(2 + c / 8));
}

TEST_CASE("the Qwen table is derived from its configuration", "[table]") {
  const TableSpec spec = load_table_spec("qwen38_ple");
  CHECK(spec.row_bytes == 320);
  CHECK(spec.row_values == 160);
  CHECK(spec.rows_per_token() == 16);
  CHECK(spec.pad == 248044);
  CHECK(spec.segment_end == 248044);
  REQUIRE(spec.layers.size() == 1);
  CHECK(spec.layers[0].layer == 1);  // the model counts its layers from one
  CHECK(spec.layers[0].head_offset.back() == 320001446);
  CHECK(spec.layers[0].rows == 320001536);
  CHECK(spec.layers[0].multipliers == std::vector<std::uint64_t>{23703573157769, 20109073645365, 8052911324071});
  CHECK(head_rows(spec.layers[0]) == std::vector<std::uint64_t>(golden::ple_primes.begin(), golden::ple_primes.end()));
}

TEST_CASE("the public demo's row totals follow from its configuration", "[table]") {
  const TableSpec spec = load_text(demo);
  CHECK(spec.layers[0].rows == 10344164);
  CHECK(spec.layers[1].rows == 10348242);
  CHECK(spec.row_bytes == 66);
}

TEST_CASE("layers are found by id", "[table]") {
  const TableSpec spec = load_table_spec("engram_v41");
  CHECK(spec.layer_index(14) == 1);
  CHECK_THROWS_WITH(spec.layer_index(2), contains_text("no layer 2") && contains_text("1, 14"));
}

TEST_CASE("the fingerprint tells tables apart", "[table]") {
  const TableSpec spec = load_table_spec("engram_v41");
  const std::string own = spec.fingerprint();
  CHECK(own.size() == 16);
  CHECK(own == load_table_spec("engram_v41").fingerprint());
  CHECK(own != load_table_spec("qwen38_ple").fingerprint());
  TableSpec changed = spec;
  changed.layers[1].multipliers[3] += 2;
  CHECK(own != changed.fingerprint());
  changed = spec;
  changed.pad = 3;
  CHECK(own != changed.fingerprint());
  CHECK(load_text(demo).fingerprint() != load_text(with(demo, "\"seed\": 0", "\"seed\": 1")).fingerprint());
}

TEST_CASE("a faulty table names its file, field and fault", "[table]") {
  CHECK_THROWS_WITH(load_table_spec("engram_v5"), contains_text("engram_v41, qwen38_ple") && contains_text(".json"));
  CHECK_THROWS_WITH(load_table_spec("/nowhere/table.json"), contains_text("/nowhere/table.json"));
  const auto complains = [](const std::string& text, const std::string& part) {
    INFO(error_of(text));
    CHECK(error_of(text).find("slacktier_table_test.json") != std::string::npos);
    CHECK(error_of(text).find(part) != std::string::npos);
  };
  complains(with(demo, "\"seed\": 0", "\"sead\": 0"), "\"seed\": is missing");
  complains(with(demo, "\"seed\": 0", "\"seed\": 0, \"sead\": 0"), "\"sead\": is unknown");
  complains(with(demo, "\"seed\": 0", "\"seed\": 0, \"seed\": 1"), "\"seed\" stands twice");
  complains(with(demo, "\"seed\": 0", "\"seed\": -1"), "\"seed\": -1");
  complains(with(demo, "\"seed\": 0", "\"seed\": 0.5"), "\"seed\": 0.5");
  complains(with(demo, "\"engram\"", "\"engrum\""), "\"hash\": unknown hash family \"engrum\": use engram or ple");
  complains(with(demo, "\"fp8_e4m3_block32\"", "\"int4\""), "\"record\": unknown format \"int4\"");
  complains(with(demo, "\"engram_head_dim\": 64", "\"engram_head_dim\": 65"), "\"engram_head_dim\": 65");
  complains(with(demo, "[1, 15]", "[15, 1]"), "\"engram_layer_ids\": layer 1 does not rise above 15");
  complains(with(demo, "[646400, 646400]", "[646400]"), "\"engram_vocab_size\": has 1 entries, 2 are needed");
  complains(with(demo, "[646400, 646400]", "4000000000"),
            "\"engram_vocab_size\": layer 1's heads need more than 2^32 - 1 rows");
  complains(with(demo, "\"compressed_vocab_size\": 98627", "\"compressed_vocab_size\": 129281"),
            "out of range: 1 to 129280");
  complains(with(demo, "\"seed\": 0", "\"seed\": 0, \"engram_num_embeddings\": [10344164, 1]"),
            "the other fields give [10344164, 10348242] rows");
  complains(with(demo, "\"seed\": 0", "\"seed\": 0,,"), "slacktier_table_test.json:5: not JSON");
  complains("[1]", "is not a JSON object");
}

TEST_CASE("primes agree with trial division", "[table]") {
  const auto by_division = [](std::uint64_t n) {
    if (n < 2) return false;
    for (std::uint64_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) return false;
    }
    return true;
  };
  for (std::uint64_t n = 0; n < 5000; ++n) CHECK(is_prime(n) == by_division(n));
  for (std::uint64_t n = 4'294'960'000; n < 4'294'960'300; ++n) CHECK(is_prime(n) == by_division(n));
  CHECK(is_prime(18446744073709551557ULL));       // the largest below 2^64
  CHECK_FALSE(is_prime(3215031751ULL));           // strong pseudoprime to bases 2, 3, 5 and 7
  CHECK_FALSE(is_prime(3825123056546413051ULL));  // ... to the first nine prime bases
  CHECK(next_prime(0) == 2);
  CHECK(next_prime(2) == 3);
  CHECK(next_prime(7) == 11);
  CHECK(next_prime(15'999'999) == 16'000'057);
}
