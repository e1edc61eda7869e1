// Per-layer embeddings that are looked up by the token alone (Gemma 3n and 4): row = token id. The model keeps one row for
// all layers, [vocab_size_per_layer_input, num_hidden_layers * hidden_size_per_layer_input], and reads layer k's columns in
// layer k. Here each layer's columns (or those of several layers in a row) are a table of their own, with the window of its
// first layer, so that a layer reads no more than it needs by then. Ids outside the table read row 0, as Gemma 3n does; its
// multimodal ids are those. Values are stored as in the checkpoint: the model multiplies by
// sqrt(hidden_size_per_layer_input). Source: Gemma3nTextModel and Gemma4TextModel in Hugging Face transformers
// (get_per_layer_inputs).
#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "tier/hash_family.hpp"
#include "tier/ngram_rows.hpp"

namespace slacktier {

namespace {

class TokenIdHash final : public RowHash {
 public:
  explicit TokenIdHash(const TableSpec& spec) : rows_(static_cast<std::uint32_t>(spec.layers.front().rows)) {}

  void rows(std::size_t, const std::uint32_t* context, std::size_t tokens, std::uint32_t* rows) const override {
    for (std::size_t token = 0; token < tokens; ++token) rows[token] = context[token] < rows_ ? context[token] : 0;
  }

  KernelHash for_kernels() const override {
    const TokenIdBlock block{rows_, 0};
    KernelHash result{"tier.hash.token_id", std::vector<std::byte>(sizeof block)};
    std::memcpy(result.parameters.data(), &block, sizeof block);
    return result;
  }

 private:
  std::uint32_t rows_;
};

void read_token_id(SpecFields& fields, TableSpec& spec) {
  const auto layers = fields.number("num_hidden_layers", 1, 100'000);
  const auto width = fields.number("hidden_size_per_layer_input", 1, 1 << 20);
  const auto rows = fields.number("vocab_size_per_layer_input", 1, INT32_MAX);
  const auto group =
      fields.has("layers_per_column_group") ? fields.number("layers_per_column_group", 1, layers) : std::uint64_t{1};
  if (layers % group != 0) {
    fields.fail("layers_per_column_group",
                fmt::format("{} does not divide the {} layers: records are of one size", group, layers));
  }
  if (width * group > 1 << 20) fields.fail("layers_per_column_group", "makes a record of more than 2^20 values");
  fields.record(spec, width * group, "hidden_size_per_layer_input");
  spec.raw_vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 1, INT32_MAX));
  spec.vocabulary = spec.raw_vocabulary;
  spec.pad = 0;  // never read: a row depends on its own token only
  spec.max_ngram = 1;
  spec.order = {1};
  for (std::uint64_t layer = 0; layer < layers; layer += group) {
    LayerTable table;
    table.layer = static_cast<int>(layer);
    table.head_offset = {0, rows};
    table.rows = rows;
    table.first_value = layer * width;
    spec.layers.push_back(std::move(table));
  }
}

void token_id_from_config(const ModelConfig& config, SpecDraft& draft) {
  auto& fields = draft.fields;
  fields["record"] = "bf16";
  const nlohmann::json& width = config.need({"hidden_size_per_layer_input"});
  if (width.is_number_integer() && width.get<std::int64_t>() == 0)
    config.fail("field \"hidden_size_per_layer_input\" is 0: this model has no per-layer embeddings");
  fields["num_hidden_layers"] = config.need({"num_hidden_layers"});
  fields["hidden_size_per_layer_input"] = width;
  fields["vocab_size_per_layer_input"] = config.need({"vocab_size_per_layer_input"});
  fields["vocab_size"] = config.need({"vocab_size"});
  fields["rows"] = {{"weight",
                     {"model.language_model.embed_tokens_per_layer.weight", "model.embed_tokens_per_layer.weight",
                      "language_model.model.embed_tokens_per_layer.weight"}},
                    {"column_split", true}};
}

std::unique_ptr<RowHash> make_token_id_hash(const TableSpec& spec) { return std::make_unique<TokenIdHash>(spec); }

}  // namespace

extern const HashFamily token_id_family{
    "token_id", read_token_id, make_token_id_hash, {"hidden_size_per_layer_input"}, token_id_from_config};

}  // namespace slacktier
