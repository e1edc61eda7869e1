// The n-gram hash of Engram and PLE: mix = t0*m0, then for n = 2..N mix ^= t(n-1)*m(n-1), and every head of order n reads
// row mix mod prime of its own part of the table.
#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "platforms/error.hpp"
#include "tier/hash_family.hpp"
#include "tier/ngram_rows.hpp"

namespace slacktier {

namespace {

class NgramHash final : public RowHash {
 public:
  explicit NgramHash(const TableSpec& spec) : max_ngram_(static_cast<std::size_t>(spec.max_ngram)) {
    heads_of_order_.resize(max_ngram_ + 1, 0);
    int before = 2;
    for (const int order : spec.order) {
      if (order < before || order > spec.max_ngram) {
        throw UsageError(
            fmt::format("table {}: heads must lie in order of their n-gram size, 2 to {}", spec.name, spec.max_ngram));
      }
      before = order;
      ++heads_of_order_[static_cast<std::size_t>(order)];
    }
    for (const LayerTable& table : spec.layers) {
      Layer layer{table.multipliers, {}};
      for (std::size_t c = 0; c + 1 < table.head_offset.size(); ++c) {
        const std::uint64_t prime = table.head_offset[c + 1] - table.head_offset[c];
        if (prime < 2)
          throw UsageError(fmt::format("table {}, layer {}: head {} has less than 2 rows", spec.name, table.layer, c));
        const auto inverse = static_cast<std::uint64_t>((Wide{1} << 64) / prime);
        layer.heads.push_back({inverse, prime, table.head_offset[c]});
      }
      layers_.push_back(std::move(layer));
    }
  }

  void rows(std::size_t layer_index, const std::uint32_t* context, std::size_t tokens, std::uint32_t* rows) const override {
    const Layer& layer = layers_[layer_index];
    const std::uint64_t* const multiplier = layer.multipliers.data();
    const std::size_t* const heads_of_order = heads_of_order_.data();
    for (std::size_t token = 0; token < tokens; ++token, context += max_ngram_) {
      const NgramHead* head = layer.heads.data();
      std::uint64_t mix = context[0] * multiplier[0];
      for (std::size_t n = 2; n <= max_ngram_; ++n) {
        mix ^= context[n - 1] * multiplier[n - 1];
        for (const NgramHead* const end = head + heads_of_order[n]; head != end; ++head) *rows++ = ngram_row(mix, *head);
      }
    }
  }

  KernelHash for_kernels() const override {
    NgramBlock header{static_cast<std::uint32_t>(max_ngram_), static_cast<std::uint32_t>(layers_.front().heads.size()),
                      static_cast<std::uint32_t>(layers_.size()), 0};
    KernelHash result{"tier.hash.ngram", std::vector<std::byte>(header.bytes())};
    std::byte* to = result.parameters.data();
    const auto append = [&to](const void* from, std::size_t bytes) {
      std::memcpy(to, from, bytes);
      to += bytes;
    };
    append(&header, sizeof header);
    for (const Layer& layer : layers_) append(layer.multipliers.data(), max_ngram_ * sizeof(std::uint64_t));
    for (const Layer& layer : layers_) append(layer.heads.data(), header.columns * sizeof(NgramHead));
    for (std::size_t order = 2; order <= max_ngram_; ++order)
      for (std::size_t head = 0; head < heads_of_order_[order]; ++head) {
        const auto value = static_cast<std::uint32_t>(order);
        append(&value, sizeof value);
      }
    return result;
  }

 private:
  struct Layer {
    std::vector<std::uint64_t> multipliers;
    std::vector<NgramHead> heads;
  };
  std::size_t max_ngram_;
  std::vector<std::size_t> heads_of_order_;
  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<RowHash> make_ngram_hash(const TableSpec& spec) { return std::make_unique<NgramHash>(spec); }

std::uint64_t multiplier_half(std::uint64_t classes) {
  const std::uint64_t half = static_cast<std::uint64_t>(INT64_MAX) / classes / 2;
  return half < 1 ? 1 : half;
}

void append_head(const SpecFields& fields, const std::string& key, LayerTable& table, std::uint64_t rows) {
  const std::uint64_t sum = table.head_offset.back() + rows;
  if (sum > UINT32_MAX) {
    fields.fail(key, fmt::format("layer {}'s heads need more than 2^32 - 1 rows; row indices are 32 bits wide: use fewer or "
                                 "smaller heads",
                                 table.layer));
  }
  table.head_offset.push_back(sum);
}

}  // namespace slacktier
