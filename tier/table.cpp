#include "tier/table.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "tier/hash/family.hpp"
#include "tier/table/fields.hpp"

namespace slacktier {

namespace {

// The built-in tables are JSON files that happen to be compiled in; table.hpp says what the fields mean.
constexpr std::array<std::string_view, 2> built_in_names{"engram_v41", "qwen38_ple"};
constexpr std::array<std::string_view, 2> built_in_texts{
    R"({"name": "engram_v41", "hash": "engram", "record": "fp8_e4m3_block32",
        "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": 256,
        "engram_vocab_size": 16000000, "engram_num_embeddings": [384006168, 384016682], "engram_pad_token_id": 2,
        "vocab_size": 129280, "compressed_vocab_size": 99092, "seed": 0})",
    R"({"name": "qwen38_ple", "hash": "ple", "record": "bf16",
        "ple_layer_ids": [2], "ngram_size": 3, "heads_per_ngram": 8, "ple_embed_dim": 2560,
        "ngram_vocab_size_base": 20000000, "make_ngram_vocab_size_divisible_by": 128,
        "vocab_size": 248320, "eos_token_id": 248044, "seed": 1234})",
};

TableSpec parse_spec(const std::string& text, const std::string& where) {
  SpecFields fields(text, where);
  TableSpec spec;
  spec.name = fields.text("name");
  spec.hash = fields.text("hash");
  try {
    hash_family(spec.hash);
  } catch (const UsageError& error) {
    fields.fail("hash", error.what());
  }
  hash_family(spec.hash).read(fields, spec);
  fields.finish();
  return spec;
}

// Feeds numbers and texts to a hash so that no two different sequences give the same bytes: all are 8 bytes, texts and lists
// are preceded by their lengths.
class Digest {
 public:
  Digest() { XXH3_64bits_reset(&state_); }
  void add(std::uint64_t number) {
    std::array<unsigned char, 8> bytes{};
    for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
    XXH3_64bits_update(&state_, bytes.data(), bytes.size());
  }
  void add(const std::string& text) {
    add(text.size());
    XXH3_64bits_update(&state_, text.data(), text.size());
  }
  template <class T>
  void add(const std::vector<T>& list) {
    add(list.size());
    for (const T& item : list) add(static_cast<std::uint64_t>(item));
  }
  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace

std::size_t TableSpec::layer_index(int layer) const {
  std::vector<int> known;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].layer == layer) return i;
    known.push_back(layers[i].layer);
  }
  throw UsageError(fmt::format("table {} has no layer {}; its layers are {}", name, layer, fmt::join(known, ", ")));
}

std::string TableSpec::fingerprint() const {
  Digest digest;
  digest.add(name);
  digest.add(hash);
  digest.add(static_cast<std::uint64_t>(format));
  digest.add(row_values);
  digest.add(row_bytes);
  digest.add(static_cast<std::uint64_t>(max_ngram));
  digest.add(vocabulary);
  digest.add(raw_vocabulary);
  digest.add(static_cast<std::uint64_t>(pad));
  digest.add(static_cast<std::uint64_t>(segment_end));
  digest.add(order);
  digest.add(layers.size());
  for (const LayerTable& table : layers) {
    digest.add(static_cast<std::uint64_t>(table.layer));
    digest.add(table.head_offset);
    digest.add(table.rows);
    digest.add(table.multipliers);
  }
  return fmt::format("{:016x}", digest.value());
}

TableSpec load_table_spec(const std::string& name_or_path) {
  for (std::size_t i = 0; i < built_in_names.size(); ++i) {
    if (name_or_path == built_in_names[i]) return parse_spec(std::string(built_in_texts[i]), name_or_path);
  }
  if (!name_or_path.ends_with(".json")) {
    throw UsageError(fmt::format("unknown table \"{}\": use {}, or a path that ends in .json", name_or_path,
                                 fmt::join(built_in_names, ", ")));
  }
  std::ifstream file(name_or_path, std::ios::binary);
  if (!file) throw UsageError(name_or_path + ": the table cannot be opened");
  return parse_spec({std::istreambuf_iterator<char>(file), {}}, name_or_path);
}

std::vector<std::string> built_in_tables() { return {built_in_names.begin(), built_in_names.end()}; }

}  // namespace slacktier
