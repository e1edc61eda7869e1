// The published vectors in full, where the reference files are at hand.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"
#include "tier/hash.hpp"

using namespace slacktier;

TEST_CASE("published rows, raw ids through the published token map", "[hash_published]") {
  const std::string vectors = real_session_file("layout_golden.json"),
                    map_file = real_session_file("token_map_v41_i32le.bin");
  if (vectors.empty() || map_file.empty()) {
    return skip_test(
        "layout_golden.json and token_map_v41_i32le.bin are not there; set SLACKTIER_SESSIONS to their directory");
  }
  std::ifstream file(vectors);
  const auto published = nlohmann::json::parse(file);
  const TableSpec spec = load_table_spec("engram_v41");
  const TokenMap map = TokenMap::load(map_file, spec);
  std::vector<std::uint32_t> ids;
  for (const std::uint32_t raw : published["golden"]["raw_ids"]) ids.push_back(map(raw));
  CHECK(ids == published["golden"]["compressed"].get<std::vector<std::uint32_t>>());
  CHECK(map(published["pad_token_id"].get<std::uint32_t>()) == spec.pad);
  CHECK(spec.layers[0].rows == published["rows"][0]);
  CHECK(spec.layers[1].rows == published["rows"][1]);

  std::vector<std::uint32_t> context(ids.size() * 4), rows(ids.size() * 24);
  gather_context(spec, ids, 0, ids.size(), context.data());
  for (const int layer : {1, 14}) {
    const std::string key = std::to_string(layer);
    const LayerTable& table = spec.layers[spec.layer_index(layer)];
    CHECK(table.multipliers == published["multipliers"][key].get<std::vector<std::uint64_t>>());
    std::size_t c = 0;
    for (const auto& order : published["primes"][key]) {
      for (const std::uint64_t prime : order) {
        REQUIRE(table.head_offset[c + 1] - table.head_offset[c] == prime);
        ++c;
      }
    }
    CHECK(c == 24);
    make_hash(spec)->rows(spec.layer_index(layer), context.data(), ids.size(), rows.data());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      REQUIRE(rows[i] == published["golden"]["rows"][key][i / 24][i % 24].get<std::uint32_t>());
    }
  }

  const auto& ple = published["qwen4_exp"];
  const TableSpec qwen = load_table_spec("qwen38_ple");
  CHECK(qwen.layers[0].multipliers == ple["multipliers"].get<std::vector<std::uint64_t>>());
  CHECK(qwen.layers[0].head_offset.back() == ple["rows_unpadded"]);
  CHECK(qwen.layers[0].rows == ple["rows_padded"]);
}

TEST_CASE("the token map is onto the compressed vocabulary", "[hash_published]") {
  const std::string path = real_session_file("token_map_v41_i32le.bin");
  if (path.empty()) return skip_test("token_map_v41_i32le.bin is not there; set SLACKTIER_SESSIONS to its directory");
  const TableSpec spec = load_table_spec("engram_v41");
  const TokenMap map = TokenMap::load(path, spec);
  std::vector<bool> seen(spec.vocabulary);
  for (std::uint32_t raw = 0; raw < map.size(); ++raw) seen[map(raw)] = true;
  CHECK(std::find(seen.begin(), seen.end(), false) == seen.end());
}
