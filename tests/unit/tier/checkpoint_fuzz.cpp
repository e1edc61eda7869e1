// Malformed safetensors files: each is refused in words, whatever was done to it, and none is read beyond its end.
#include <cstdint>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/safetensors.hpp"
#include "tier/rows.hpp"
#include "tier/safetensors.hpp"

using namespace slacktier;
using test::pattern;
using test::safetensors_bytes;
using test::with_length;

namespace {

// "" when the file is taken, else why not. Any other exception than UsageError fails the test. Copies are of exact size, so
// that the address sanitizer sees each byte read too far.
std::string judged(const std::string& file) {
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(file.data()),
                                     reinterpret_cast<const std::byte*>(file.data()) + file.size());
  try {
    if (bytes.size() < 8) throw UsageError("F: short");
    const std::uint64_t length = safetensors_json_bytes(std::span(bytes).first<8>(), bytes.size(), "F");
    const std::vector<std::byte> json(bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(length));
    for (const auto& [name, tensor] : parse_safetensors_json(json, bytes.size(), "F")) {
      REQUIRE(tensor.begin >= 8 + length);
      REQUIRE(tensor.begin <= tensor.end);
      REQUIRE(tensor.end <= bytes.size());
    }
  } catch (const UsageError& error) {
    const std::string text = error.what();
    REQUIRE(text.find("F: ") == 0);
    REQUIRE(text.size() < 1000);
    return text;
  }
  return "";
}

const std::string one = R"("dtype":"U8","shape":[2,3],"data_offsets":[0,6])";
std::string file_of(const std::string& json, std::size_t data) { return with_length(json, pattern(data, 1)); }

}  // namespace

TEST_CASE("each breach of the format is named", "[checkpoint_fuzz]") {
  const auto refused = [](const std::string& json, std::size_t data, const std::string& part) {
    const std::string verdict = judged(file_of(json, data));
    INFO(json << " -> " << verdict);
    CHECK(verdict.find(part) != std::string::npos);
    CHECK_FALSE(verdict.empty());
  };
  CHECK(judged(file_of("{\"a\":{" + one + "}}   \n", 6)).empty());
  CHECK(judged(file_of("{\"__metadata__\":{\"x\":\"y\"},\"a\":{" + one + "}}", 6)).empty());
  CHECK(judged(file_of("{}", 0)).empty());
  refused("", 0, "no JSON object");
  refused(" {\"a\":{" + one + "}}", 6, "no JSON object");
  refused("[]", 0, "no JSON object");
  refused("{\"a\":{" + one + "}", 6, "not JSON");
  refused("{\"a\":{" + one + "}}x", 6, "not JSON");
  refused("{\"a\":{" + one + "}}" + std::string(1, '\0'), 6, "not JSON");
  refused("{\"a\":{" + one + "},\"a\":{" + one + "}}", 6, "\"a\" stands twice");
  refused("{\"a\":{" + one + ",\"dtype\":\"U8\"}}", 6, "\"dtype\" twice");
  refused("{\"a\":{" + one + ",\"extra\":\"U8\"}}", 6, "unknown field \"extra\"");
  refused("{\"a\":{\"shape\":[6],\"data_offsets\":[0,6]}}", 6, "has no dtype");
  refused("{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,6]}}", 6, "has no shape");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6]}}", 6, "has no data_offsets");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[6]}}", 6, "not two data_offsets");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,6,6]}}", 6, "more than two");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[6,0]}}", 6, "need 6");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6],\"data_offsets\":[0,5]}}", 6, "need 6");
  refused("{\"a\":{\"dtype\":\"U9\",\"shape\":[6],\"data_offsets\":[0,6]}}", 6, "unknown dtype \"U9\"");
  refused("{\"a\":{\"dtype\":8,\"shape\":[6],\"data_offsets\":[0,6]}}", 6, "where it cannot be");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[-6],\"data_offsets\":[0,6]}}", 6, "the number -6");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[6.0],\"data_offsets\":[0,6]}}", 6, "the number 6.0");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[NaN],\"data_offsets\":[0,6]}}", 6, "not JSON");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[1e999],\"data_offsets\":[0,6]}}", 6, "");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[[6]],\"data_offsets\":[0,6]}}", 6, "a list");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":6,\"data_offsets\":[0,6]}}", 6, "the number 6");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[null],\"data_offsets\":[0,6]}}", 6, "null");
  refused("{\"a\":3}", 6, "the number 3");
  refused("{\"__metadata__\":{\"x\":1}}", 0, "the number 1");
  refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,6]}}", 6, "more elements");
  refused("{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "whole bytes");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[18446744073709551615],\"data_offsets\":[0,18446744073709551615]}}", 6,
          "more elements");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[7],\"data_offsets\":[0,7]}}", 6, "truncated");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", 6, "behind its last tensor");
  refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[1,6]}}", 6, "after a gap");
  const std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  refused("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6, "inside another");
  refused("{" + a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", 6, "after a gap");
  refused("{\"a\\u0000\\n\":{\"dtype\":\"?\",\"shape\":[],\"data_offsets\":[0,1]}}", 1, "a??");
  refused(std::string(100'000, '['), 0, "no JSON object");
  refused("{\"a\":" + std::string(100'000, '['), 0, "a list");
  refused("{\"a\":" + std::string(100'000, '{'), 0, "");
  refused("{\"a\":{\"shape\":" + std::string(100'000, '['), 0, "a list");

  const std::string good = safetensors_bytes({{"w", "BF16", {3, 2}, pattern(12, 1)}});
  CHECK(judged(good).empty());
  for (std::uint64_t length :
       {std::uint64_t{100'000'001}, std::uint64_t{1} << 63, UINT64_MAX, std::uint64_t{good.size() - 7}}) {
    std::string changed = good;
    for (std::size_t i = 0; i < 8; ++i) changed[i] = static_cast<char>(length >> (8 * i));
    CHECK_FALSE(judged(changed).empty());
  }
}

TEST_CASE("thousands of damaged files are refused or read within bounds", "[checkpoint_fuzz]") {
  const std::string good = safetensors_bytes({{"layers.1.w", "F8_E4M3", {6, 64}, pattern(384, 1)},
                                              {"layers.1.s", "F8_E8M0", {6, 2}, pattern(12, 2)},
                                              {"x", "F32", {}, pattern(4, 3)},
                                              {"y", "BF16", {0, 5}, ""}},
                                             3);
  const std::size_t header = good.find("}}") + 2;
  REQUIRE(judged(good).empty());
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) REQUIRE_FALSE(judged(good.substr(0, bytes)).empty());
  REQUIRE_FALSE(judged(good + "x").empty());

  std::mt19937_64 random(3);
  std::size_t refused = 0, mutants = 0;
  const auto judge = [&](const std::string& mutant) {
    ++mutants;
    refused += !judged(mutant).empty();
  };
  // Every bit of the header.
  for (std::size_t at = 0; at < header; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string mutant = good;
      mutant[at] = static_cast<char>(mutant[at] ^ (1 << bit));
      judge(mutant);
    }
  }
  // Pieces cut out, doubled and moved; numbers replaced by awkward ones. The length field follows the JSON, so that the
  // parser sees them.
  const std::string json = good.substr(8, header - 8 + 3), data = good.substr(header + 3);
  const char* numbers[] = {
      "0",  "1", "18446744073709551615", "18446744073709551616", "-1", "1e300", "4294967296", "384", "396", "NaN", "\"7\"",
      "[]", "{}"};
  for (int round = 0; round < 6000; ++round) {
    std::string mutant = json;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % mutant.size(), length = 1 + random() % 12;
      switch (random() % 4) {
        case 0:
          mutant.erase(at, length);
          break;
        case 1:
          mutant.insert(random() % mutant.size(), mutant.substr(at, length));
          break;
        case 2: {
          std::size_t digit = mutant.find_first_of("0123456789", at);
          if (digit == std::string::npos) break;
          const std::size_t end = mutant.find_first_not_of("0123456789", digit);
          mutant.replace(digit, end - digit, numbers[random() % std::size(numbers)]);
          break;
        }
        default:
          mutant[at] = static_cast<char>(random());
      }
      if (mutant.empty()) mutant = "{";
    }
    judge(with_length(mutant, data));
  }
  INFO(refused << " of " << mutants << " refused");
  CHECK(mutants > 8000);
  CHECK(refused > mutants * 8 / 10);  // the others changed names or metadata only
}

TEST_CASE("damaged files are refused on the way in too", "[checkpoint_fuzz]") {
  const test::Scratch scratch;
  const TableSpec spec = load_table_spec(scratch.write("t.json", R"({"name": "t", "hash": "token_id", "record": "bf16",
    "vocab_size": 6, "num_hidden_layers": 2, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 6,
    "rows": {"weight": "w", "column_split": true}})"));
  const std::string good = safetensors_bytes({{"w", "BF16", {6, 64}, pattern(768, 1)}});
  const auto refusal = [&](const std::string& bytes) -> std::string {
    try {
      checkpoint_table(spec, scratch.write("m.safetensors", bytes));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(good).empty());
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, std::size_t{8}, std::size_t{40}, good.size() - 1})
    CHECK_THAT(refusal(good.substr(0, bytes)), contains_text("m.safetensors"));
  for (std::size_t at = 0; at < good.find("}}") + 2; ++at) {
    std::string mutant = good;
    mutant[at] = static_cast<char>(mutant[at] ^ 4);
    const std::string error = refusal(mutant);
    CAPTURE(at, error);
    REQUIRE((error.empty() || error.find("m.safetensors") != std::string::npos));
  }
  // A file that becomes shorter while it is open.
  scratch.write("m.safetensors", good);
  const auto table = checkpoint_table(spec, scratch.file("m.safetensors"));
  scratch.write("m.safetensors", good.substr(0, good.size() - 10));
  const auto origin = table->origin(1, make_shard(spec, 1, ShardMap::contiguous, 1, 0));
  std::vector<std::byte> row(spec.row_bytes);
  CHECK_NOTHROW(origin->row(0, row.data()));
  CHECK_THROWS_AS(origin->row(5, row.data()), DeviceError);
}
