#include "tier/rows.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "tier/table/mix.hpp"

namespace slacktier {

namespace {

std::string described(std::uint64_t seed) { return fmt::format("generated seed={}", seed); }

// Counter mode: word i of a row is finalize64(key + i * gamma), where the key is made of table, layer, global row and seed.
class GeneratedRows final : public RowOrigin {
 public:
  GeneratedRows(const TableSpec& spec, std::size_t layer_index, const Shard& shard, std::uint64_t seed)
      : format_(spec.format), values_(spec.row_values), row_bytes_(spec.row_bytes), shard_(shard), seed_(seed) {
    const std::uint64_t table = std::stoull(spec.fingerprint(), nullptr, 16);
    const auto layer = static_cast<std::uint64_t>(spec.layers.at(layer_index).layer);
    key_ = splitmix64(splitmix64(splitmix64(seed) ^ table) ^ layer);
  }

  void row(std::uint64_t local_row, std::byte* out) const override {
    const std::uint64_t key = splitmix64(key_ ^ shard_.global_row(local_row));
    if (format_ == RecordFormat::bf16) {
      random_bytes(key, row_bytes_, out);
      return;
    }
    random_bytes(key, values_, out);
    // Half a word a scale: the low ten bits choose, the high sixteen are the value.
    std::uint64_t counter = key + golden_gamma * (values_ / 8);
    std::uint64_t word = 0;
    for (std::uint32_t i = 0; i < values_ / 32; ++i, word >>= 32) {
      if (i % 2 == 0) word = finalize64(counter += golden_gamma);
      const std::uint64_t draw = (word >> 16) & 0xFFFF;
      out[values_ + i] = static_cast<std::byte>((word & 1023) == 0 ? draw >> 8 : 117 + (draw * 21 >> 16));
    }
  }

  void rows(std::uint64_t first, std::uint64_t count, std::byte* out) const override {
    for (std::uint64_t i = 0; i < count; ++i) row(first + i, out + i * row_bytes_);
  }

  std::string describe() const override { return described(seed_); }

 private:
  static void random_bytes(std::uint64_t key, std::uint32_t bytes, std::byte* out) {
    std::uint64_t counter = key;
    std::uint32_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
      const std::uint64_t word = finalize64(counter += golden_gamma);
      std::memcpy(out + at, &word, 8);
    }
    const std::uint64_t word = finalize64(counter + golden_gamma);
    if (at < bytes) std::memcpy(out + at, &word, bytes - at);
  }

  RecordFormat format_;
  std::uint32_t values_, row_bytes_;
  Shard shard_;
  std::uint64_t seed_, key_ = 0;
};

class GeneratedTable final : public TableRows {
 public:
  GeneratedTable(const TableSpec& spec, std::uint64_t seed) : spec_(spec), seed_(seed) {}
  std::unique_ptr<RowOrigin> origin(std::size_t layer_index, const Shard& shard) const override {
    return generated_rows(spec_, layer_index, shard, seed_);
  }
  std::string describe() const override { return described(seed_); }
  std::uint64_t identity() const override { return seed_; }

 private:
  TableSpec spec_;
  std::uint64_t seed_;
};

}  // namespace

std::shared_ptr<const TableRows> generated_table(const TableSpec& spec, std::uint64_t seed) {
  return std::make_shared<GeneratedTable>(spec, seed);
}

std::unique_ptr<RowOrigin> generated_rows(const TableSpec& spec, std::size_t layer_index, const Shard& shard,
                                          std::uint64_t seed) {
  return std::make_unique<GeneratedRows>(spec, layer_index, shard, seed);
}

}  // namespace slacktier
