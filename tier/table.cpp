#include "tier/table.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "tier/hash_family.hpp"
#include "tier/table/fields.hpp"
#include "tier/table/model_config.hpp"
#include "tier/table/strict_json.hpp"

namespace slacktier {

namespace {

// The built-in tables are JSON files that happen to be compiled in; table.hpp says what the fields mean.
struct BuiltIn {
  std::string_view name, text;
};
constexpr std::array built_in{
    BuiltIn{"engram_v41", R"({"name": "engram_v41", "hash": "engram", "record": "fp8_e4m3_block32",
        "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4, "engram_n_heads": 8, "engram_head_dim": 256,
        "engram_vocab_size": 16000000, "engram_num_embeddings": [384006168, 384016682], "engram_pad_token_id": 2,
        "vocab_size": 129280, "compressed_vocab_size": 99092, "seed": 0,
        "rows": {"weight": "layers.{layer}.engram.embed.weight", "scale": "layers.{layer}.engram.embed.scale"}})"},
    BuiltIn{"qwen38_ple", R"({"name": "qwen38_ple", "hash": "ple", "record": "bf16",
        "ple_layer_ids": [2], "ngram_size": 3, "heads_per_ngram": 8, "ple_embed_dim": 2560,
        "ngram_vocab_size_base": 20000000, "make_ngram_vocab_size_divisible_by": 128,
        "vocab_size": 248320, "eos_token_id": 248044, "seed": 1234,
        "rows": {"weight":
          "model.language_model.layers.{layer}.ple.ple_embedding.ngram_embedding.shard_{part}.weight"}})"},
    BuiltIn{"gemma4_e4b_ple", R"({"name": "gemma4_e4b_ple", "hash": "token_id", "record": "bf16",
        "num_hidden_layers": 42, "hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262144,
        "vocab_size": 262144,
        "rows": {"weight": "model.language_model.embed_tokens_per_layer.weight", "column_split": true}})"},
    BuiltIn{"longcat_flash_lite", R"({"name": "longcat_flash_lite", "hash": "polynomial", "record": "bf16",
        "ngram_vocab_size_ratio": 78, "emb_neighbor_num": 4, "emb_split_num": 4, "hidden_size": 3072,
        "vocab_size": 131072, "eos_token_id": 2,
        "rows": {"weight": "model.ngram_embeddings.embedders.{head}.weight"}})"},
};

RowTensors read_tensors(SpecFields fields) {
  RowTensors tensors;
  tensors.weight = fields.texts("weight");
  if (fields.has("scale")) tensors.scale = fields.texts("scale");
  if (fields.has("column_split")) tensors.column_split = fields.flag("column_split");
  fields.finish();
  return tensors;
}

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
  if (fields.has("rows")) spec.tensors = read_tensors(fields.object("rows"));
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
  for (const BuiltIn& table : built_in) {
    if (name_or_path == table.name) return parse_spec(std::string(table.text), name_or_path);
  }
  if (!name_or_path.ends_with(".json")) {
    throw UsageError(fmt::format("unknown table \"{}\": use {}, or a path that ends in .json", name_or_path,
                                 fmt::join(built_in_tables(), ", ")));
  }
  return parse_spec(read_small_file(name_or_path), name_or_path);
}

std::vector<std::string> built_in_tables() {
  std::vector<std::string> names;
  for (const BuiltIn& table : built_in) names.emplace_back(table.name);
  return names;
}

DerivedSpec table_spec_from_config(const std::string& config_path, const std::string& name, const std::string& hash) {
  const ModelConfig config(config_path);
  std::vector<const HashFamily*> found;
  std::vector<std::string> looked_for, found_names;
  for (const HashFamily* family : all_hash_families()) {
    if (family->from_config == nullptr) continue;
    bool here = false;
    for (const std::string_view key : family->config_keys) {
      if (key.empty()) continue;
      here = here || config.find(std::string(key)) != nullptr;
      looked_for.push_back(fmt::format("{} ({})", key, family->name));
    }
    if (!hash.empty() ? family->name != hash : !here) continue;
    found.push_back(family);
    found_names.emplace_back(family->name);
  }
  if (!hash.empty() && found.empty()) {
    hash_family(hash);  // an unknown one is answered with the list
    throw UsageError(fmt::format("hash family \"{}\" reads no model's config", hash));
  }
  if (found.empty()) {
    config.fail(fmt::format("model type \"{}\" has no lookup table that is known: looked for {} {}", config.model_type(),
                            fmt::join(looked_for, ", "), config.places()));
  }
  if (found.size() > 1)
    config.fail(
        fmt::format("has tables of several hash families: choose one of {} with --hash", fmt::join(found_names, ", ")));
  SpecDraft draft;
  draft.fields["name"] = name.empty() ? config.model_type() : name;
  draft.fields["hash"] = found.front()->name;
  found.front()->from_config(config, draft);
  DerivedSpec derived{draft.fields.dump(2) + "\n", std::move(draft.notes)};
  parse_spec(derived.text, config_path);  // values that make no table are said with the config's name
  return derived;
}

}  // namespace slacktier
