// LongCat's n-gram embedding: an n-gram's tokens are the digits of a number in base vocab_size, and head i of the table
// reads row number mod M_i, with M_i = int(ngram_vocab_size_ratio * vocab_size + 2i + 1). Heads are order-major: i = (n - 2)
// * emb_split_num + j for the orders n = 2 to emb_neighbor_num. The embedding is part of the model's input: it is read
// before layer 0, whose window is zero. Look-backs before the start add nothing (digit 0), and so do those that meet an end
// of text; an end of text itself sees back. Source: LongCat-Flash-Lite's released modelling code as ported to Apple's mlx-lm
// (models/longcat_flash_ngram.py), and vLLM's reference in its tests for the segments.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>

#include "platforms/error.hpp"
#include "tier/hash_family.hpp"
#include "tier/ngram_rows.hpp"

namespace slacktier {

namespace {

class PolynomialHash final : public RowHash {
 public:
  explicit PolynomialHash(const TableSpec& spec) : depth_(static_cast<std::size_t>(spec.max_ngram)) {
    for (const LayerTable& table : spec.layers) {
      Layer layer;
      for (std::size_t c = 0; c < spec.order.size(); ++c) {
        const std::uint64_t size = table.head_offset[c + 1] - table.head_offset[c];
        if (size < 2)
          throw UsageError(fmt::format("table {}, layer {}: head {} has less than 2 rows", spec.name, table.layer, c));
        const auto terms = static_cast<std::size_t>(spec.order[c]);
        if (terms < 1 || terms > depth_)
          throw UsageError(fmt::format("table {}: head {} is of order {}, not 1 to {}", spec.name, c, terms, depth_));
        // Terms are below vocabulary * size each; their sum must stay below 2^63.
        if ((static_cast<Wide>(terms) * spec.vocabulary * size) >> 63 != 0)
          throw UsageError(
              fmt::format("table {}: head {} has too many rows for a vocabulary of {}", spec.name, c, spec.vocabulary));
        layer.heads.push_back({static_cast<std::uint64_t>((Wide{1} << 64) / size), size, table.head_offset[c]});
        if (layers_.empty()) terms_.push_back(static_cast<std::uint32_t>(terms));
        std::uint64_t power = 1;  // vocabulary^d mod size
        for (std::size_t d = 0; d < depth_; ++d) {
          layer.powers.push_back(power);
          power = power * spec.vocabulary % size;
        }
      }
      layers_.push_back(std::move(layer));
    }
  }

  void rows(std::size_t layer_index, const std::uint32_t* context, std::size_t tokens, std::uint32_t* rows) const override {
    const Layer& layer = layers_[layer_index];
    for (std::size_t token = 0; token < tokens; ++token, context += depth_) {
      const std::uint64_t* power = layer.powers.data();
      const std::uint32_t* terms = terms_.data();
      for (const NgramHead& head : layer.heads) {
        std::uint64_t mix = context[0];
        for (std::uint32_t d = 1; d < *terms; ++d) mix += context[d] * power[d];
        *rows++ = ngram_row(mix, head);
        power += depth_;
        ++terms;
      }
    }
  }

  KernelHash for_kernels() const override {
    const PolynomialBlock header{static_cast<std::uint32_t>(depth_), static_cast<std::uint32_t>(terms_.size()),
                                 static_cast<std::uint32_t>(layers_.size()), 0};
    KernelHash result{"tier.hash.polynomial", std::vector<std::byte>(header.bytes())};
    std::byte* to = result.parameters.data();
    const auto append = [&to](const auto& list) {
      const std::size_t bytes = list.size() * sizeof(list[0]);
      std::memcpy(to, list.data(), bytes);
      to += bytes;
    };
    append(std::span(&header, 1));
    for (const Layer& layer : layers_) append(layer.heads);
    for (const Layer& layer : layers_) append(layer.powers);
    append(terms_);
    return result;
  }

 private:
  struct Layer {
    std::vector<NgramHead> heads;
    std::vector<std::uint64_t> powers;  // [heads][depth]: of the vocabulary, mod the head's rows
  };
  std::size_t depth_;
  std::vector<std::uint32_t> terms_;  // of each head: its order
  std::vector<Layer> layers_;
};

void read_polynomial(SpecFields& fields, TableSpec& spec) {
  const auto orders = fields.number("emb_neighbor_num", 2, 16) - 1;
  const auto split = fields.number("emb_split_num", 1, 64);
  const auto heads = orders * split;
  const double ratio = fields.real("ngram_vocab_size_ratio", 1e-6, 1e6);
  const auto width = fields.number("hidden_size", 1, 1 << 24);
  if (width < heads) fields.fail("hidden_size", fmt::format("{} gives the {} heads no value each", width, heads));
  fields.record(spec, width / heads, "hidden_size");
  spec.raw_vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 2, INT32_MAX));
  spec.vocabulary = spec.raw_vocabulary;
  spec.pad = 0;
  if (fields.has("eos_token_id"))
    spec.segment_end = static_cast<std::int64_t>(fields.number("eos_token_id", 0, spec.vocabulary - 1));
  spec.max_ngram = static_cast<int>(orders + 1);
  LayerTable table;
  table.layer = 0;
  table.head_offset.push_back(0);
  for (std::uint64_t i = 0; i < heads; ++i) {
    spec.order.push_back(static_cast<int>(2 + i / split));
    // In doubles and cut off, as the model computes it: the ratio may be a fraction.
    const double rows = ratio * spec.vocabulary + static_cast<double>(2 * i) + 1;
    append_head(fields, "ngram_vocab_size_ratio", table, static_cast<std::uint64_t>(rows));
  }
  table.rows = table.head_offset.back();
  spec.layers.push_back(std::move(table));
}

void polynomial_from_config(const ModelConfig& config, SpecDraft& draft) {
  auto& fields = draft.fields;
  if (const nlohmann::json* special = config.find("ngram_exclude_sp_token"); special && *special == true)
    config.fail("field \"ngram_exclude_sp_token\" is true: special tokens that pass the table by are not supported");
  fields["record"] = "bf16";
  fields["ngram_vocab_size_ratio"] = config.need({"ngram_vocab_size_ratio", "oe_vocab_size_ratio"});
  fields["emb_neighbor_num"] = config.need({"emb_neighbor_num", "oe_neighbor_num"});
  fields["emb_split_num"] = config.need({"emb_split_num", "oe_split_num"});
  fields["hidden_size"] = config.need({"hidden_size"});
  fields["vocab_size"] = config.need({"text_vocab_size", "vocab_size"});
  if (const nlohmann::json* eos = config.find("eos_token_id")) {
    fields["eos_token_id"] = eos->is_array() ? eos->front() : *eos;
  } else {
    draft.notes.emplace_back("eos_token_id: the config names none; look-backs cross every token");
  }
  fields["rows"]["weight"] = {"model.ngram_embeddings.embedders.{head}.weight"};
}

std::unique_ptr<RowHash> make_polynomial_hash(const TableSpec& spec) { return std::make_unique<PolynomialHash>(spec); }

}  // namespace

extern const HashFamily polynomial_family{"polynomial",
                                          read_polynomial,
                                          make_polynomial_hash,
                                          {"ngram_vocab_size_ratio", "oe_vocab_size_ratio"},
                                          polynomial_from_config};

}  // namespace slacktier
