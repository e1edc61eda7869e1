// Rows that were recorded: what `slacktier-harness trace anonymise` leaves of conversations. A "token" is the number of a
// context, and a context's rows are listed in a file beside the table's JSON (fields: tier/table.hpp's common ones;
// row_values, layers, orders (of each column), head_rows (rows of each column, layer after layer), rows_file, rows_xxh3: its
// XXH3-64). The file is little-endian uint32, [layers][vocab_size][columns], global rows as any hash gives them.
#include <fmt/format.h>
#include <xxhash.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

#include "platforms/error.hpp"
#include "tier/hash_family.hpp"

namespace slacktier {
namespace {

static_assert(std::endian::native == std::endian::little);

using Rows = std::vector<std::uint32_t>;

// A spec is a value and holds no rows: they are read with it, and kept for as long as the process lives under their digest,
// which stands in the place of multipliers and so is in the spec's fingerprint.
struct Kept {
  std::mutex mutex;
  std::map<std::uint64_t, std::shared_ptr<const Rows>> rows;
};
Kept& kept() {
  static Kept all;
  return all;
}

class RecordedHash final : public RowHash {
 public:
  RecordedHash(const TableSpec& spec, std::shared_ptr<const Rows> rows)
      : contexts_(spec.vocabulary), columns_(spec.rows_per_token()), rows_(std::move(rows)) {}
  void rows(std::size_t layer, const std::uint32_t* context, std::size_t tokens, std::uint32_t* rows) const override {
    const std::uint32_t* of_layer = rows_->data() + layer * contexts_ * columns_;
    for (std::size_t t = 0; t < tokens; ++t)
      std::memcpy(rows + t * columns_, of_layer + context[t] * columns_, columns_ * sizeof(std::uint32_t));
  }

 private:
  std::size_t contexts_, columns_;
  std::shared_ptr<const Rows> rows_;
};

void read_recorded(SpecFields& fields, TableSpec& spec) {
  fields.record(spec, fields.number("row_values", 1, 1 << 20), "row_values");
  spec.raw_vocabulary = static_cast<std::uint32_t>(fields.number("vocab_size", 1, INT32_MAX));
  spec.vocabulary = spec.raw_vocabulary;
  spec.pad = 0;  // never read: a row depends on its own context only
  spec.max_ngram = 1;
  for (const std::uint64_t order : fields.numbers("orders", 1, 64)) spec.order.push_back(static_cast<int>(order));
  const auto layers = fields.layers("layers", 0);
  const auto head_rows = fields.numbers("head_rows", 1, UINT32_MAX);
  const std::size_t columns = spec.order.size();
  if (columns == 0) fields.fail("orders", "is empty: at least one column is needed");
  if (head_rows.size() != layers.size() * columns)
    fields.fail("head_rows", fmt::format("{} numbers, not one for each of {} columns of {} layers", head_rows.size(),
                                         columns, layers.size()));
  for (std::size_t l = 0; l < layers.size(); ++l) {
    LayerTable table;
    table.layer = static_cast<int>(layers[l]);
    table.head_offset = {0};
    for (std::size_t c = 0; c < columns; ++c) append_head(fields, "head_rows", table, head_rows[l * columns + c]);
    table.rows = table.head_offset.back();
    spec.layers.push_back(std::move(table));
  }

  const std::string digest = fields.text("rows_xxh3");
  if (digest.size() != 16 || digest.find_first_not_of("0123456789abcdef") != std::string::npos)
    fields.fail("rows_xxh3", "16 hexadecimal digits are needed");
  const std::uint64_t key = std::stoull(digest, nullptr, 16);
  for (LayerTable& table : spec.layers) table.multipliers = {key};
  const auto path = std::filesystem::path(fields.where()).parent_path() / fields.text("rows_file");
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  if (all.rows.contains(key)) return;

  const std::size_t count = layers.size() * spec.vocabulary * columns;
  std::ifstream in(path, std::ios::binary);
  if (!in) fields.fail("rows_file", path.string() + ": cannot open");
  std::error_code ignored;
  const auto bytes = std::filesystem::file_size(path, ignored);
  if (bytes != count * sizeof(std::uint32_t))
    fields.fail("rows_file", fmt::format("{}: {} bytes, not 4 for each of {} rows", path.string(), bytes, count));
  auto rows = std::make_shared<Rows>(count);
  in.read(reinterpret_cast<char*>(rows->data()), static_cast<std::streamsize>(bytes));
  if (!in) fields.fail("rows_file", path.string() + ": cannot read");
  if (XXH3_64bits(rows->data(), bytes) != key) fields.fail("rows_xxh3", path.string() + " is another file, or damaged");
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = i % columns;
    const LayerTable& table = spec.layers[i / (spec.vocabulary * columns)];
    if ((*rows)[i] < table.head_offset[c] || (*rows)[i] >= table.head_offset[c + 1])
      fields.fail("rows_file", fmt::format("{}: row {} at byte {} is outside its column", path.string(), (*rows)[i], 4 * i));
  }
  all.rows[key] = std::move(rows);
}

std::unique_ptr<RowHash> make_recorded(const TableSpec& spec) {
  Kept& all = kept();
  const std::lock_guard lock(all.mutex);
  return std::make_unique<RecordedHash>(spec, all.rows.at(spec.layers.front().multipliers.front()));
}

}  // namespace

extern const HashFamily recorded_family{"recorded", read_recorded, make_recorded, {}, nullptr};

}  // namespace slacktier
