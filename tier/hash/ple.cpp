// Qwen3.8 per-layer embeddings (`qwen4_exp` in Hugging Face transformers): the same hash over other constants, with
// look-backs that never cross an end of text.
#include <fmt/format.h>

#include <cstdint>

#include "tier/hash_family.hpp"
#include "tier/primes.hpp"
#include "tier/table/mix.hpp"

namespace slacktier {

namespace {

void read_ple(SpecFields& fields, TableSpec& spec) {
  const auto one_based_layers = fields.layers("ple_layer_ids", 1);
  const auto orders = fields.number("ngram_size", 2, 16) - 1;
  const auto heads = orders * fields.number("heads_per_ngram", 1, 64);
  const auto width = fields.number("ple_embed_dim", 1, 1 << 24);
  const auto base = fields.number("ngram_vocab_size_base", 2, UINT32_MAX);
  const auto divisor = fields.number("make_ngram_vocab_size_divisible_by", 1, 1 << 30);
  const auto seed = fields.number("seed", 0, INT32_MAX);
  if (width % heads != 0) fields.fail("ple_embed_dim", fmt::format("{} is no multiple of the {} heads", width, heads));
  fields.record(spec, width / heads, "ple_embed_dim");
  spec.raw_vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 1, INT32_MAX));
  spec.vocabulary = spec.raw_vocabulary;
  spec.pad = static_cast<std::int64_t>(fields.number("eos_token_id", 0, spec.vocabulary - 1));
  spec.segment_end = spec.pad;
  spec.max_ngram = static_cast<int>(orders + 1);
  for (std::uint64_t i = 0; i < heads; ++i) spec.order.push_back(static_cast<int>(2 + i / (heads / orders)));

  const std::uint64_t half = multiplier_half(spec.vocabulary);
  std::uint64_t prime = base - 1;  // consecutive primes over all heads of all layers
  for (std::size_t index = 0; index < one_based_layers.size(); ++index) {
    LayerTable table;
    table.layer = static_cast<int>(one_based_layers[index] - 1);
    for (std::uint64_t i = 0; i < orders + 1; ++i) {
      table.multipliers.push_back(2 * (splitmix64(seed + 10007 * index + golden_gamma * (i + 1)) % half) + 1);
    }
    table.head_offset.push_back(0);
    for (std::uint64_t head = 0; head < heads; ++head) {
      prime = next_prime(prime);
      append_head(fields, "ngram_vocab_size_base", table, prime);
    }
    table.rows = (table.head_offset.back() + divisor - 1) / divisor * divisor;
    if (table.rows > UINT32_MAX) fields.fail("make_ngram_vocab_size_divisible_by", "pads the table beyond 2^32 - 1 rows");
    spec.layers.push_back(std::move(table));
  }
}

// Names and defaults of Qwen4ExpTextConfig; the checkpoint holds the table in row ranges (split_ngram_parts).
void ple_from_config(const ModelConfig& config, SpecDraft& draft) {
  auto& fields = draft.fields;
  fields["record"] = "bf16";
  fields["ple_layer_ids"] = config.need({"ple_layer_ids"});
  for (const char* key : {"ngram_size", "heads_per_ngram"}) fields[key] = config.need({key});
  fields["ple_embed_dim"] = config.need({"ple_embed_dim", "hidden_size"});
  for (const char* key : {"ngram_vocab_size_base", "make_ngram_vocab_size_divisible_by", "vocab_size"})
    fields[key] = config.need({key});
  const nlohmann::json& eos = config.need({"eos_token_id"});
  fields["eos_token_id"] = eos.is_array() ? eos.front() : eos;
  const nlohmann::json* const seed = config.find("seed");
  fields["seed"] = seed ? *seed : nlohmann::json(1234);
  if (!seed) draft.notes.emplace_back("seed: the config names none; the model's default is 1234");
  const std::string table = "layers.{layer}.ple.ple_embedding.ngram_embedding.";
  fields["rows"]["weight"] = {"model.language_model." + table + "shard_{part}.weight",
                              "model." + table + "shard_{part}.weight", "model.language_model." + table + "weight",
                              "model." + table + "weight"};
  fields["rows"]["scale"] = {"model.language_model." + table + "weight_scale", "model." + table + "weight_scale"};
}

}  // namespace

extern const HashFamily ple_family{"ple", read_ple, make_ngram_hash, {"ple_layer_ids"}, ple_from_config};

}  // namespace slacktier
