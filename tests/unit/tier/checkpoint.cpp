// Rows of safetensors checkpoints: every form of tensor, record and shard against arithmetic on the bytes that were written.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>

#include "platforms/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/tier/safetensors.hpp"
#include "tier/image.hpp"
#include "tier/rows.hpp"

using namespace slacktier;
using test::pattern;
using test::safetensors_bytes;
using test::TensorBytes;

namespace {

// Two layers of one head each, `rows` rows of 64 FP8 values; `tensors` is the "rows" object.
TableSpec fp8_table(const test::Scratch& scratch, const std::string& tensors,
                    const std::string& record = "fp8_e4m3_block32") {
  return load_table_spec(scratch.write("fp8.json", R"({"name": "t", "hash": "engram", "record": ")" + record + R"(",
    "engram_layer_ids": [1, 3], "engram_max_ngram_size": 3, "engram_n_heads": 1, "engram_head_dim": 64, "engram_vocab_size": 90,
    "engram_pad_token_id": 0, "vocab_size": 50, "compressed_vocab_size": 50, "seed": 0, "rows": )" +
                                                       tensors + "}"));
}

TableSpec token_table(const test::Scratch& scratch, const std::string& tensors, int group = 1) {
  return load_table_spec(scratch.write("token.json", R"({"name": "g", "hash": "token_id", "record": "bf16", "vocab_size": 40,
    "num_hidden_layers": 4, "hidden_size_per_layer_input": 32, "vocab_size_per_layer_input": 37,
    "layers_per_column_group": )" + std::to_string(group) +
                                                         R"(, "rows": )" + tensors + "}"));
}

std::string row_of(const TableRows& rows, const TableSpec& spec, std::size_t layer, std::uint64_t row) {
  const Shard whole = make_shard(spec, layer, ShardMap::contiguous, 1, 0);
  std::string record(spec.row_bytes, '?');
  rows.origin(layer, whole)->row(row, reinterpret_cast<std::byte*>(record.data()));
  return record;
}

std::string as_bytes(const std::vector<float>& values) {
  std::string text(values.size() * 4, '\0');
  std::memcpy(text.data(), values.data(), text.size());
  return text;
}

// Both layers' weights and scales of an FP8 table: "w1", "s1", "w3", "s3".
struct Fp8Bytes {
  std::string w[2], s[2];
  explicit Fp8Bytes(const TableSpec& spec) {
    for (std::size_t l = 0; l < 2; ++l) {
      w[l] = pattern(spec.layers[l].rows * 64, 10 + l);
      s[l] = pattern(spec.layers[l].rows * 2, 20 + l);
    }
  }
};

std::string refusal(const TableSpec& spec, const std::string& path) {
  try {
    checkpoint_table(spec, path);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("weights and scales of several files become records", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec spec = fp8_table(scratch, R"({"weight": ["no.{layer}", "w{layer}"], "scale": "s{layer}"})");
  const Fp8Bytes bytes(spec);
  const std::uint64_t rows[2] = {spec.layers[0].rows, spec.layers[1].rows};
  // Odd offsets: what lies before is of odd length. Weight and scale of layer 1 lie in different files.
  scratch.write("m/a.safetensors", safetensors_bytes({{"odd", "U8", {3}, "abc"},
                                                      {"w1", "F8_E4M3", {rows[0], 64}, bytes.w[0]},
                                                      {"s3", "F8_E8M0", {rows[1], 2}, bytes.s[1]}},
                                                     5));
  scratch.write("m/b.safetensors", safetensors_bytes({{"s1", "U8", {rows[0], 2}, bytes.s[0]},
                                                      {"empty", "F32", {0, 7}, ""},
                                                      {"w3", "F8_E4M3", {rows[1], 64}, bytes.w[1]}}));
  scratch.write("m/model.safetensors.index.json", R"({"metadata": {"total_size": 1}, "weight_map": {"w1": "a.safetensors",
    "s3": "a.safetensors", "s1": "b.safetensors", "w3": "b.safetensors", "unused": "missing.safetensors"}})");
  const auto table = checkpoint_table(spec, scratch.file("m"));
  CHECK_THAT(table->describe(), contains_text("safetensors fingerprint=") && contains_text("in 2 files"));
  for (std::size_t l = 0; l < 2; ++l) {
    for (std::uint64_t row = 0; row < rows[l]; ++row)
      REQUIRE(row_of(*table, spec, l, row) == bytes.w[l].substr(row * 64, 64) + bytes.s[l].substr(row * 2, 2));
  }

  // Ranges of rows, whatever the shard: the same as row by row.
  for (const ShardMap map : {ShardMap::contiguous, ShardMap::striped}) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const Shard shard = make_shard(spec, 0, map, 2, rank);
      const auto origin = table->origin(0, shard);
      std::string all(shard.rows * spec.row_bytes, '?');
      origin->rows(0, shard.rows, reinterpret_cast<std::byte*>(all.data()));
      for (std::uint64_t row = 0; row < shard.rows; ++row)
        REQUIRE(all.substr(row * spec.row_bytes, spec.row_bytes) == row_of(*table, spec, 0, shard.global_row(row)));
    }
  }
}

TEST_CASE("the fingerprint tells checkpoints apart, not places", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec spec = fp8_table(scratch, R"({"weight": "w{layer}", "scale": "s{layer}"})");
  Fp8Bytes bytes(spec);
  const auto describe = [&](const std::string& file) {
    std::vector<TensorBytes> tensors;
    for (std::size_t l = 0; l < 2; ++l) {
      const std::string k = l == 0 ? "1" : "3";
      tensors.push_back({"w" + k, "F8_E4M3", {spec.layers[l].rows, 64}, bytes.w[l]});
      tensors.push_back({"s" + k, "F8_E8M0", {spec.layers[l].rows, 2}, bytes.s[l]});
    }
    const auto table = checkpoint_table(spec, scratch.write(file, safetensors_bytes(tensors)));
    CHECK(table->describe() == table->origin(0, make_shard(spec, 0, ShardMap::contiguous, 1, 0))->describe());
    return table->describe();
  };
  const std::string first = describe("a.safetensors");
  CHECK(describe("elsewhere/b.safetensors") == first);
  bytes.w[0] = pattern(bytes.w[0].size(), 99);  // other weights in a file of the same shape, as of a fine-tuned model
  CHECK(describe("a.safetensors") != first);
}

TEST_CASE("columns of a wide row are layers", "[checkpoint]") {
  const test::Scratch scratch;
  const std::string bytes = pattern(37 * 4 * 64, 4);
  const std::string file = scratch.write("g.safetensors", safetensors_bytes({{"e", "BF16", {37, 128}, bytes}}, 1));
  for (const int group : {1, 2, 4}) {
    const TableSpec spec = token_table(scratch, R"({"weight": "e", "column_split": true})", group);
    const auto table = checkpoint_table(spec, file);
    const std::size_t record = 64 * static_cast<std::size_t>(group);
    for (std::size_t l = 0; l < spec.layers.size(); ++l) {
      for (std::uint64_t row = 0; row < 37; ++row)
        REQUIRE(row_of(*table, spec, l, row) == bytes.substr(row * 256 + l * record, record));
    }
  }
  const TableSpec unsplit = token_table(scratch, R"({"weight": "e"})");
  CHECK_THAT(refusal(unsplit, file), contains_text("\"e\" has the shape [37, 128]; rows of 32 values"));
}

TEST_CASE("row ranges and heads are tensors of their own", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec parts = token_table(scratch, R"({"weight": "e{layer}.{part}"})");
  std::vector<TensorBytes> tensors;
  std::string layers[4];
  for (std::size_t l = 0; l < 4; ++l) {
    std::uint64_t part = 0;
    for (const std::uint64_t rows : {std::uint64_t{5}, std::uint64_t{0}, std::uint64_t{31}, std::uint64_t{1}}) {
      tensors.push_back(
          {"e" + std::to_string(l) + "." + std::to_string(part), "BF16", {rows, 32}, pattern(rows * 64, 100 * l + part)});
      layers[l] += tensors.back().bytes;
      ++part;
    }
  }
  const std::string file = scratch.write("p.safetensors", safetensors_bytes(tensors));
  const auto table = checkpoint_table(parts, file);
  for (std::size_t l = 0; l < 4; ++l) {
    for (std::uint64_t row = 0; row < 37; ++row) REQUIRE(row_of(*table, parts, l, row) == layers[l].substr(row * 64, 64));
    std::string all(37 * 64, '?');
    table->origin(l, make_shard(parts, l, ShardMap::contiguous, 1, 0))
        ->rows(0, 37, reinterpret_cast<std::byte*>(all.data()));
    CHECK(all == layers[l]);
  }

  const TableSpec heads = load_table_spec(scratch.write("p.json", R"({"name": "p", "hash": "polynomial", "record": "bf16",
    "vocab_size": 10, "ngram_vocab_size_ratio": 3, "emb_neighbor_num": 3, "emb_split_num": 2, "hidden_size": 128,
    "rows": {"weight": "h{head}"}})"));
  std::string whole;
  std::vector<TensorBytes> by_head;
  for (std::uint64_t h = 0; h < 4; ++h) {
    const std::uint64_t rows = 31 + 2 * h;
    by_head.push_back({"h" + std::to_string(h), "BF16", {rows, 32}, pattern(rows * 64, h)});
    whole += by_head.back().bytes;
  }
  const std::string head_file = scratch.write("h.safetensors", safetensors_bytes(by_head));
  const auto head_table = checkpoint_table(heads, head_file);
  for (std::uint64_t row = 0; row < heads.layers[0].rows; ++row)
    REQUIRE(row_of(*head_table, heads, 0, row) == whole.substr(row * 64, 64));

  std::swap(by_head[1].bytes, by_head[2].bytes);
  std::swap(by_head[1].shape, by_head[2].shape);
  CHECK_THAT(refusal(heads, scratch.write("x.safetensors", safetensors_bytes(by_head))),
             contains_text("\"h1\" has 35 rows, head 1 of table p has 33"));
  by_head.resize(3);
  CHECK_THAT(refusal(heads, scratch.write("y.safetensors", safetensors_bytes(by_head))),
             contains_text("lacks the tensor \"h3\""));
}

TEST_CASE("padding that a checkpoint lacks is zeros", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec spec = load_table_spec(scratch.write("q.json", R"({"name": "q", "hash": "ple", "record": "bf16",
    "ple_layer_ids": [2], "ngram_size": 2, "heads_per_ngram": 2, "ple_embed_dim": 64, "ngram_vocab_size_base": 20,
    "make_ngram_vocab_size_divisible_by": 64, "vocab_size": 100, "eos_token_id": 1, "seed": 1, "rows": {"weight": "t"}})"));
  const std::uint64_t used = spec.layers[0].head_offset.back();
  REQUIRE(spec.layers[0].rows > used);
  const std::string bytes = pattern(used * 64, 3);
  const auto table =
      checkpoint_table(spec, scratch.write("q.safetensors", safetensors_bytes({{"t", "BF16", {used, 32}, bytes}})));
  CHECK(row_of(*table, spec, 0, used - 1) == bytes.substr((used - 1) * 64));
  CHECK(row_of(*table, spec, 0, used) == std::string(64, '\0'));
  CHECK_THAT(
      refusal(spec, scratch.write("q.safetensors", safetensors_bytes({{"t", "BF16", {used - 1, 32}, bytes.substr(64)}}))),
      contains_text("rows, layer 1 of table q has"));
}

TEST_CASE("scales of other types are stored as E8M0 or multiplied in", "[checkpoint]") {
  const test::Scratch scratch;
  const std::string names = R"({"weight": "w{layer}", "scale": "s{layer}"})";
  const TableSpec blocks = fp8_table(scratch, names), bf16 = fp8_table(scratch, names, "bf16");
  const Fp8Bytes bytes(blocks);
  const std::uint64_t rows = blocks.layers[0].rows, rows3 = blocks.layers[1].rows;
  // Layer 1: a power of two a row; layer 3: one number for all.
  std::vector<float> scale(rows);
  for (std::size_t i = 0; i < rows; ++i) scale[i] = std::ldexp(1.0f, static_cast<int>(i % 255) - 127);
  const auto file = [&](const std::vector<float>& first, const std::vector<float>& second) {
    return scratch.write("s.safetensors", safetensors_bytes({{"w1", "F8_E4M3", {rows, 64}, bytes.w[0]},
                                                             {"w3", "F8_E4M3", {rows3, 64}, bytes.w[1]},
                                                             {"s1", "F32", {rows, 1}, as_bytes(first)},
                                                             {"s3", "F32", {}, as_bytes(second)}}));
  };
  auto table = checkpoint_table(blocks, file(scale, {0.25f}));
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::string record = row_of(*table, blocks, 0, row);
    REQUIRE(record.substr(0, 64) == bytes.w[0].substr(row * 64, 64));
    REQUIRE(record.substr(64) == std::string(2, static_cast<char>(row % 255)));
  }
  CHECK(row_of(*table, blocks, 1, 5).substr(64) == std::string(2, static_cast<char>(125)));

  scale[7] = 0.3f;
  table = checkpoint_table(blocks, file(scale, {0.25f}));
  CHECK_NOTHROW(row_of(*table, blocks, 0, 6));
  CHECK_THROWS_WITH(row_of(*table, blocks, 0, 7),
                    contains_text("scale 0 of row 7 of \"w1\" is no power of two") && contains_text("record bf16"));

  // As BF16 records: value * scale in FP32, rounded once more.
  table = checkpoint_table(bf16, file(scale, {1.9945416716e-4f}));
  for (std::uint64_t row = 0; row < rows3; ++row) {
    const std::string record = row_of(*table, bf16, 1, row);
    for (std::size_t v = 0; v < 64; ++v) {
      const auto code = static_cast<std::uint8_t>(bytes.w[1][row * 64 + v]);
      const int exponent = code >> 3 & 15, mantissa = code & 7;
      const float value =
          (code & 128 ? -1.0f : 1.0f) * (exponent == 15 && mantissa == 7 ? std::nanf("")
                                         : exponent == 0                 ? std::ldexp(static_cast<float>(mantissa), -9)
                                                         : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10));
      std::uint16_t got = 0;
      std::memcpy(&got, record.data() + 2 * v, 2);
      const float product = value * 1.9945416716e-4f;
      if (std::isnan(product)) {
        REQUIRE(got == 0x7FC0);
        continue;
      }
      const float back = std::bit_cast<float>(static_cast<std::uint32_t>(got) << 16);
      REQUIRE(std::abs(back - product) <= std::abs(product) / 256);  // within half a unit of eight bits
      REQUIRE(std::signbit(back) == std::signbit(product));
    }
  }
}

TEST_CASE("checkpoints that do not hold the table are refused by name", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec spec = fp8_table(scratch, R"({"weight": ["w{layer}", "model.w{layer}"], "scale": "s{layer}"})");
  const Fp8Bytes bytes(spec);
  const std::uint64_t rows[2] = {spec.layers[0].rows, spec.layers[1].rows};
  std::vector<TensorBytes> good;
  for (std::size_t l = 0; l < 2; ++l) {
    const std::string k = l == 0 ? "1" : "3";
    good.push_back({"w" + k, "F8_E4M3", {rows[l], 64}, bytes.w[l]});
    good.push_back({"s" + k, "F8_E8M0", {rows[l], 2}, bytes.s[l]});
  }
  const auto refused = [&](std::size_t at, const TensorBytes& instead, const std::string& part) {
    std::vector<TensorBytes> tensors = good;
    tensors[at] = instead;
    const std::string error = refusal(spec, scratch.write("x.safetensors", safetensors_bytes(tensors)));
    INFO(error);
    CHECK(error.find("x.safetensors") != std::string::npos);
    CHECK(error.find(part) != std::string::npos);
  };
  CHECK(refusal(spec, scratch.write("x.safetensors", safetensors_bytes(good))) == "no error");
  const auto& w1 = good[0];
  const auto& s1 = good[1];
  refused(0, {"embed.1", w1.dtype, w1.shape, w1.bytes}, "looked for w1 and model.w1; its 4 tensors are embed.1, s1");
  refused(1, {"x", s1.dtype, s1.shape, s1.bytes}, "no scale of table t, layer 1: looked for s1");
  refused(0, {"w1", "I8", w1.shape, w1.bytes}, "is I8; records of this table come from F8_E4M3 with a scale");
  refused(0, {"w1", "F8_E4M3", {rows[0] * 2, 32}, w1.bytes}, "rows of 64 values");
  refused(0, {"w1", "F8_E4M3", {rows[0] - 1, 64}, w1.bytes.substr(64)}, "rows, layer 1 of table t has");
  refused(0, {"w1", "F8_E4M3", {rows[0] * 64}, w1.bytes}, "rows of 64 values");
  refused(1, {"s1", "F8_E5M2", s1.shape, s1.bytes}, "scales are F8_E8M0, U8, F32 or BF16");
  refused(1, {"s1", "U8", {rows[0] - 1, 2}, s1.bytes.substr(2)}, "gives scales for");
  refused(1, {"s1", "U8", {rows[0], 3}, s1.bytes + std::string(rows[0], 'x')}, "3 scales a row do not divide its 2 blocks");
  refused(3, {"s3", "F32", {2}, "12345678"}, "gives scales for 2 rows");

  CHECK_THAT(refusal(fp8_table(scratch, R"({"weight": "w{layer}"})"), scratch.file("x.safetensors")),
             contains_text("\"scale\""));
  CHECK_THAT(refusal(fp8_table(scratch, R"({"weight": "w{layre}", "scale": "s"})"), scratch.file("x.safetensors")),
             contains_text("unknown name in braces"));
  TableSpec silent = spec;
  silent.tensors = {};
  CHECK_THAT(refusal(silent, scratch.file("x.safetensors")),
             contains_text("does not say where") && contains_text("\"rows\""));
  CHECK_THAT(refusal(spec, scratch.file("nowhere")), contains_text("nowhere: cannot be opened"));
  std::filesystem::create_directory(scratch.file("empty"));
  CHECK_THAT(refusal(spec, scratch.file("empty")), contains_text("neither model.safetensors.index.json nor"));
  scratch.write("two/a.safetensors", safetensors_bytes(good));
  scratch.write("two/b.safetensors", safetensors_bytes({w1}));
  CHECK_THAT(refusal(spec, scratch.file("two")), contains_text("\"w1\" lies in a.safetensors and in b.safetensors"));
  for (const char* name : {"../x.safetensors", "/etc/passwd", "", ".hidden"}) {
    scratch.write("m/model.safetensors.index.json", std::string(R"({"weight_map": {"w1": ")") + name + "\"}}");
    CHECK_THAT(refusal(spec, scratch.file("m")), contains_text("no file of its folder"));
  }
  scratch.write("m/x.safetensors", safetensors_bytes({w1}));
  scratch.write("m/model.safetensors.index.json", R"({"weight_map": {"w1": "x.safetensors", "s1": "x.safetensors"}})");
  CHECK_THAT(refusal(spec, scratch.file("m")), contains_text("lacks the tensor \"s1\" that the index says"));
  for (const char* text : {"{}", "[]", R"({"weight_map": 3})", R"({"weight_map": {"w1": 3}})", "{",
                           R"({"weight_map": {"a": "b", "a": "b"}})"}) {
    scratch.write("m/model.safetensors.index.json", text);
    CHECK_THAT(refusal(spec, scratch.file("m")), contains_text("model.safetensors.index.json"));
  }
}

TEST_CASE("images of a checkpoint's rows are staged, verified and told from others", "[checkpoint]") {
  const test::Scratch scratch;
  const TableSpec spec = fp8_table(scratch, R"({"weight": "w{layer}", "scale": "s{layer}"})");
  const auto file = [&](const char* name, std::uint64_t seed) {
    std::vector<TensorBytes> tensors;
    for (std::size_t l = 0; l < 2; ++l) {
      const std::string k = l == 0 ? "1" : "3";
      tensors.push_back({"w" + k, "F8_E4M3", {spec.layers[l].rows, 64}, pattern(spec.layers[l].rows * 64, seed + l)});
      tensors.push_back({"s" + k, "F8_E8M0", {spec.layers[l].rows, 2}, pattern(spec.layers[l].rows * 2, seed + 5 + l)});
    }
    return scratch.write(name, safetensors_bytes(tensors));
  };
  const auto ours = checkpoint_table(spec, file("a.safetensors", 1)),
             theirs = checkpoint_table(spec, file("b.safetensors", 2));
  StageOptions options;
  options.disks = {scratch.file("a.img"), scratch.file("b.img")};
  options.ranks = 2;
  options.shard_map = ShardMap::striped;
  options.page_bytes = 512;
  options.rows = ours;
  stage_image(spec, options);
  const ImageHeader header = open_image(options.disks, spec);
  CHECK(header.origin == ours->describe());
  CHECK(verify_image(spec, options.disks, 0, {}, 0, ours).bad == 0);
  CHECK(verify_image(spec, options.disks, 9, {}, 0, ours).pages == 9);
  CHECK_NOTHROW(require_image(header, ShardMap::striped, 2, *ours));

  CHECK_THROWS_WITH(verify_image(spec, options.disks, 0, {}, 0, theirs),
                    contains_text("another origin") && contains_text(ours->describe()) && contains_text(theirs->describe()));
  CHECK_THROWS_WITH(verify_image(spec, options.disks, 0, {}),
                    contains_text("not generated seed=1") && contains_text("--rows"));
  CHECK_THROWS_WITH(require_image(header, ShardMap::striped, 2, *theirs), contains_text("another origin"));
  options.rows = theirs;
  CHECK_THROWS_WITH(stage_image(spec, options), contains_text("origin is") && contains_text("discard it first"));
  options.rows = nullptr;
  CHECK_THROWS_WITH(stage_image(spec, options), contains_text("origin is"));

  // The checkpoint changes behind the image's back, in rows that the fingerprint did not sample or after it was taken.
  std::string bytes = scratch.read("a.safetensors");
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 1);
  scratch.write("a.safetensors", bytes);
  const VerifyReport report = verify_image(spec, options.disks, 0, {}, 0, ours);
  REQUIRE(report.bad == 1);
  CHECK_THAT(report.first_bad.front(), contains_text("layer 3") && contains_text("differs from safetensors"));
}
