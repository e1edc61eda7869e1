// DeepSeek-V4.1 Engram: geometry and multipliers from the words of the model's configuration.
#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "tier/hash_family.hpp"
#include "tier/numpy_random.hpp"
#include "tier/primes.hpp"

namespace slacktier {

namespace {

void read_engram(SpecFields& fields, TableSpec& spec) {
  const auto layers = fields.layers("engram_layer_ids", 0);
  const auto orders = fields.number("engram_max_ngram_size", 2, 16) - 1;
  const auto heads = fields.number("engram_n_heads", 1, 64);
  const auto sizes = fields.numbers_or_one("engram_vocab_size", orders, 2, UINT32_MAX);
  const auto seed = fields.number("seed", 0, INT32_MAX);
  spec.raw_vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 1, INT32_MAX));
  spec.vocabulary = static_cast<std::uint32_t>(fields.number("compressed_vocab_size", 1, spec.raw_vocabulary));
  spec.pad = static_cast<std::int64_t>(fields.number("engram_pad_token_id", 0, spec.vocabulary - 1));
  spec.max_ngram = static_cast<int>(orders + 1);
  fields.record(spec, fields.number("engram_head_dim", 1, 1 << 20), "engram_head_dim");
  for (std::uint64_t i = 0; i < orders * heads; ++i) spec.order.push_back(static_cast<int>(2 + i / heads));

  const std::uint64_t half = multiplier_half(spec.vocabulary);
  std::set<std::uint64_t> used;  // one set over the whole model: no two heads share a prime
  for (const std::uint64_t layer : layers) {
    LayerTable table;
    table.layer = static_cast<int>(layer);
    NumpyRandom random(seed + 10007 * layer);
    for (int i = 0; i < spec.max_ngram; ++i) table.multipliers.push_back(2 * random.below(half) + 1);
    table.head_offset.push_back(0);
    for (const std::uint64_t size : sizes) {
      std::uint64_t prime = size - 1;
      for (std::uint64_t head = 0; head < heads; ++head) {
        do prime = next_prime(prime);
        while (!used.insert(prime).second);
        append_head(fields, "engram_vocab_size", table, prime);
      }
    }
    table.rows = table.head_offset.back();
    spec.layers.push_back(std::move(table));
  }

  if (!fields.has("engram_num_embeddings")) return;  // redundant: the configuration repeats what the primes sum to
  const auto totals = fields.numbers("engram_num_embeddings", 0, UINT64_MAX);
  for (std::size_t i = 0; i < std::max(totals.size(), layers.size()); ++i) {
    if (i >= totals.size() || i >= layers.size() || totals[i] != spec.layers[i].rows) {
      std::vector<std::uint64_t> derived;
      for (const LayerTable& table : spec.layers) derived.push_back(table.rows);
      fields.fail("engram_num_embeddings", fmt::format("the other fields give [{}] rows", fmt::join(derived, ", ")));
    }
  }
}

// Names as DeepSeek-V4.1's config.json and checkpoint have them.
void engram_from_config(const ModelConfig& config, SpecDraft& draft) {
  auto& fields = draft.fields;
  fields["record"] = "fp8_e4m3_block32";
  fields["engram_layer_ids"] = config.need({"engram_layer_ids"});
  for (const char* key : {"engram_max_ngram_size", "engram_n_heads", "engram_head_dim", "engram_vocab_size"})
    fields[key] = config.need({key});
  if (const nlohmann::json* rows = config.find("engram_num_embeddings")) fields["engram_num_embeddings"] = *rows;
  fields["engram_pad_token_id"] = config.need({"engram_pad_token_id"});
  fields["vocab_size"] = config.need({"vocab_size"});
  fields["compressed_vocab_size"] = config.need({"engram_compressed_vocab_size", "compressed_vocab_size"});
  const nlohmann::json* const seed = config.find("engram_seed");
  fields["seed"] = seed ? *seed : nlohmann::json(0);
  if (!seed) draft.notes.emplace_back("seed: the config names none; the released model's multipliers are those of seed 0");
  fields["rows"] = {{"weight", {"layers.{layer}.engram.embed.weight", "model.layers.{layer}.engram.embed.weight"}},
                    {"scale", {"layers.{layer}.engram.embed.scale", "model.layers.{layer}.engram.embed.scale"}}};
}

}  // namespace

extern const HashFamily engram_family{"engram", read_engram, make_ngram_hash, {"engram_layer_ids"}, engram_from_config};

}  // namespace slacktier
