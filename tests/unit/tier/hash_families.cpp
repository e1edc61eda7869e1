// The families besides the n-gram hash of Engram and PLE, and how another is added.
#include <cstdint>
#include <random>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/scratch.hpp"
#include "tier/hash.hpp"
#include "tier/hash_family.hpp"
#include "tier/image.hpp"
#include "tier/rows.hpp"

using namespace slacktier;

namespace {

std::vector<std::uint32_t> rows_of(const TableSpec& spec, std::size_t layer, const std::vector<std::uint32_t>& sequence) {
  std::vector<std::uint32_t> context(sequence.size() * static_cast<std::size_t>(spec.max_ngram));
  gather_context(spec, sequence, 0, sequence.size(), context.data());
  std::vector<std::uint32_t> rows(sequence.size() * spec.rows_per_token());
  make_hash(spec)->rows(layer, context.data(), sequence.size(), rows.data());
  return rows;
}

// The definition: an n-gram is a number in base `vocabulary`, newest token lowest, and its row that number mod the head's
// rows. In 128 bits, and without powers taken modulo anything.
std::vector<std::uint32_t> slow_polynomial(const TableSpec& spec, const std::vector<std::uint32_t>& sequence) {
  __extension__ using Wide = unsigned __int128;
  std::vector<std::uint32_t> rows;
  const LayerTable& table = spec.layers[0];
  for (std::size_t at = 0; at < sequence.size(); ++at) {
    for (std::size_t c = 0; c < spec.order.size(); ++c) {
      Wide number = 0, digit = 1;
      for (std::size_t back = 0; back < static_cast<std::size_t>(spec.order[c]) && back <= at; ++back) {
        if (back > 0 && static_cast<std::int64_t>(sequence[at - back]) == spec.segment_end) break;
        number += sequence[at - back] * digit;
        digit *= spec.vocabulary;
      }
      const std::uint64_t size = table.head_offset[c + 1] - table.head_offset[c];
      rows.push_back(static_cast<std::uint32_t>(static_cast<std::uint64_t>(number % size) + table.head_offset[c]));
    }
  }
  return rows;
}

TableSpec load_text(const test::Scratch& scratch, const std::string& text) {
  return load_table_spec(scratch.write("table.json", text));
}

// A family of this test's own: every token reads one row, its id backwards. What one file of tier/hash/ would hold.
class BackwardsHash final : public RowHash {
 public:
  explicit BackwardsHash(const TableSpec& spec) : rows_(static_cast<std::uint32_t>(spec.layers.front().rows)) {}
  void rows(std::size_t, const std::uint32_t* context, std::size_t tokens, std::uint32_t* rows) const override {
    for (std::size_t t = 0; t < tokens; ++t) rows[t] = rows_ - 1 - context[t];
  }

 private:
  std::uint32_t rows_;
};

void read_backwards(SpecFields& fields, TableSpec& spec) {
  fields.record(spec, fields.number("width", 32, 1024), "width");
  spec.raw_vocabulary = spec.vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 1, 1 << 20));
  spec.max_ngram = 1;
  spec.pad = 0;
  spec.order = {1};
  LayerTable table;
  table.layer = static_cast<int>(fields.number("layer", 0, 100));
  table.rows = spec.vocabulary;
  table.head_offset = {0, table.rows};
  spec.layers.push_back(table);
}

const HashFamily backwards_family{"backwards", read_backwards, [](const TableSpec& spec) -> std::unique_ptr<RowHash> {
                                    return std::make_unique<BackwardsHash>(spec);
                                  }};

}  // namespace

TEST_CASE("Gemma's table: one layer a column group, row = token", "[hash_families]") {
  const TableSpec spec = load_table_spec("gemma4_e4b_ple");
  REQUIRE(spec.layers.size() == 42);
  CHECK(spec.rows_per_token() == 1);
  CHECK(spec.row_values == 256);
  CHECK(spec.row_bytes == 512);
  CHECK(spec.max_ngram == 1);
  for (int k = 0; k < 42; ++k) {
    const LayerTable& table = spec.layers[static_cast<std::size_t>(k)];
    CHECK(table.layer == k);
    CHECK(table.rows == 262144);
    CHECK(table.first_value == static_cast<std::uint64_t>(k) * 256);
  }
  CHECK(rows_of(spec, 41, {0, 7, 262143}) == std::vector<std::uint32_t>{0, 7, 262143});
}

TEST_CASE("tokens that a per-layer table does not hold read its row 0", "[hash_families]") {
  const test::Scratch scratch;
  // Gemma 3n: ids of images and sounds lie behind the table.
  const TableSpec spec = load_text(scratch, R"({"name": "g3n", "hash": "token_id", "record": "bf16", "vocab_size": 262400,
    "num_hidden_layers": 30, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144})");
  CHECK(spec.vocabulary == 262400);
  CHECK(rows_of(spec, 3, {262143, 262144, 262399, 1}) == std::vector<std::uint32_t>{262143, 0, 0, 1});
}

TEST_CASE("layers may share a record, read before the first of them", "[hash_families]") {
  const test::Scratch scratch;
  const std::string text = R"({"name": "g", "hash": "token_id", "record": "bf16", "vocab_size": 1000,
    "num_hidden_layers": 42, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 1000,
    "layers_per_column_group": )";
  const TableSpec spec = load_text(scratch, text + "7}");
  REQUIRE(spec.layers.size() == 6);
  CHECK(spec.layers[5].layer == 35);
  CHECK(spec.layers[5].first_value == 35 * 256);
  CHECK(spec.row_bytes == 7 * 512);  // just one record a page of 4 KiB
  CHECK(spec.fingerprint() != load_text(scratch, text + "6}").fingerprint());
  CHECK_THROWS_WITH(load_text(scratch, text + "5}"), contains_text("layers_per_column_group") && contains_text("42 layers"));
}

TEST_CASE("LongCat's table is derived from its configuration", "[hash_families]") {
  const TableSpec spec = load_table_spec("longcat_flash_lite");
  REQUIRE(spec.layers.size() == 1);
  CHECK(spec.layers[0].layer == 0);  // the model's input: nothing runs before it
  CHECK(spec.rows_per_token() == 12);
  CHECK(spec.row_values == 256);
  CHECK(spec.layers[0].rows == 122683536);
  CHECK(spec.layers[0].head_offset[1] == 78 * 131072 + 1);
  CHECK(spec.order == std::vector<int>{2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4});
  const test::Scratch scratch;
  // LongCat 2.0: a ratio that is no whole number.
  const TableSpec second = load_text(scratch, R"({"name": "l2", "hash": "polynomial", "record": "bf16",
    "vocab_size": 163840, "ngram_vocab_size_ratio": 100.567, "emb_neighbor_num": 5, "emb_split_num": 4,
    "hidden_size": 8192, "eos_token_id": 2})");
  CHECK(second.layers[0].head_offset[1] == 16476898);
  CHECK(second.layers[0].rows == 263630608);
  CHECK(second.row_values == 512);
}

TEST_CASE("rows of the polynomial hash", "[hash_families]") {
  const TableSpec spec = load_table_spec("longcat_flash_lite");
  // Python's integers gave these: sum of token * 131072^distance, mod 78 * 131072 + 2i + 1; 2 ends a text.
  const auto rows = rows_of(spec, 0, {5, 131071, 0, 99999, 2, 7, 2, 2, 131000, 42});
  const auto at = [&](std::size_t token) {
    return std::vector<std::uint32_t>(rows.begin() + static_cast<std::ptrdiff_t>(12 * token),
                                      rows.begin() + static_cast<std::ptrdiff_t>(12 * token + 12));
  };
  using Rows = std::vector<std::uint32_t>;
  CHECK(at(0) == Rows{5, 10223622, 20447241, 30670862, 40894485, 51118110, 61341737, 71565366, 81788997, 92012630, 102236265,
                      112459902});
  CHECK(at(3) == Rows{99999, 10323616, 20547235, 30770856, 49440293, 58774163, 68108207, 77442425, 91150135, 96022558,
                      111119652, 115994145});
  CHECK(at(4) == Rows{391936, 10612989, 20834044, 31055101, 41276160, 51497221, 61718284, 71939349, 85551576, 92849223,
                      102289574, 113872617});
  CHECK(at(5) == Rows{7, 10223624, 20447243, 30670864, 40894487, 51118112, 61341739, 71565368, 81788999, 92012632, 102236267,
                      112459904});
  CHECK(at(7)[0] == 2);
  CHECK(at(9) == Rows{4979099, 15199358, 25419619, 35639882, 45860147, 56080414, 66300683, 76520954, 86741227, 96961502,
                      107181779, 117402058});
}

TEST_CASE("the polynomial hash equals its definition", "[hash_families]") {
  const test::Scratch scratch;
  const std::string wide = R"({"name": "p", "hash": "polynomial", "record": "bf16", "vocab_size": 163840,
    "ngram_vocab_size_ratio": 1634.5, "emb_neighbor_num": 5, "emb_split_num": 1, "hidden_size": 64, "eos_token_id": 2})";
  std::mt19937_64 random(5);
  for (const TableSpec& spec : {load_table_spec("longcat_flash_lite"), load_text(scratch, wide)}) {
    std::vector<std::uint32_t> sequence(4000);
    for (auto& id : sequence) {
      id = random() % 9 == 0 ? 2
           : random() % 3    ? static_cast<std::uint32_t>(random() % spec.vocabulary)
                             : static_cast<std::uint32_t>(spec.vocabulary - 1 - random() % 3);
    }
    CHECK(rows_of(spec, 0, sequence) == slow_polynomial(spec, sequence));
  }
  CHECK_THROWS_WITH(load_text(scratch, R"({"name": "p", "hash": "polynomial", "record": "bf16", "vocab_size": 163840,
    "ngram_vocab_size_ratio": 20000, "emb_neighbor_num": 5, "emb_split_num": 4, "hidden_size": 64})"),
                    contains_text("ngram_vocab_size_ratio") && contains_text("2^32 - 1 rows"));
}

// What ARCHITECTURE.md promises: a hash family is one file and one registration, a table one JSON file; everything else
// (specs, shards, images, verification) takes them as they are.
TEST_CASE("a hash family and a table of it can be added", "[hash_families]") {
  const test::Scratch scratch;
  const std::string text = R"({"name": "mine", "hash": "backwards", "record": "fp8_e4m3_block32", "width": 64,
    "vocab_size": 5000, "layer": 3})";
  CHECK_THROWS_WITH(load_text(scratch, text), contains_text("unknown hash family \"backwards\""));
  register_hash_family(backwards_family);
  CHECK(hash_families().back() == "backwards");
  CHECK_THROWS_WITH(register_hash_family(backwards_family), contains_text("is there already"));
  const TableSpec spec = load_text(scratch, text);
  CHECK(rows_of(spec, 0, {0, 4999}) == std::vector<std::uint32_t>{4999, 0});

  StageOptions options;
  options.disks = {scratch.file("mine.img")};
  options.ranks = 2;
  stage_image(spec, options);
  CHECK(verify_image(spec, options.disks, 0, {}).bad == 0);
  const ImageHeader header = open_image(options.disks, spec);
  CHECK(header.segment(3, 1).rows == 2500);
  CHECK_THROWS_WITH(load_text(scratch, R"({"name": "mine", "hash": "backwards", "record": "bf16", "width": 64,
    "vocab_size": 5000, "layer": 3, "depth": 1})"),
                    contains_text("\"depth\": is unknown"));
}
