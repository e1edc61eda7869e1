// Where row bytes come from: the origin against which every served row is checked, and from which images are staged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

// The rows of one layer's shard.
class RowOrigin {
 public:
  virtual ~RowOrigin() = default;
  // Writes the record of a local row of the shard (row_bytes bytes). Thread-safe. Throws std::system_error or DeviceError
  // where bytes are read and the read fails, UsageError where what is read makes no record.
  virtual void row(std::uint64_t local_row, std::byte* out) const = 0;
  // `count` local rows from `first` on, their records one after another.
  virtual void rows(std::uint64_t first, std::uint64_t count, std::byte* out) const = 0;
  // As TableRows::describe().
  virtual std::string describe() const = 0;
};

// The rows of a whole table: what an image is staged from, a host table filled with, and served rows are checked against.
class TableRows {
 public:
  virtual ~TableRows() = default;
  // The rows of one shard of one layer; holds what it needs of this object. The shard must be of this table's spec.
  virtual std::unique_ptr<RowOrigin> origin(std::size_t layer_index, const Shard& shard) const = 0;
  // What an image names as the origin of its rows: "generated seed=S", or "safetensors ..." with a fingerprint. Equal
  // texts mean equal rows; where the files lie does not matter.
  virtual std::string describe() const = 0;
  // The same as a number.
  virtual std::uint64_t identity() const = 0;
};

// Random bytes from (table fingerprint, layer, global row, seed): any row can be written without holding the table. E4M3
// values take every bit pattern; scales are drawn from [117, 137] with one in 1,024 taken from all 256, so NaN, zero and
// extreme scales occur. BF16 rows are random bit patterns.
std::unique_ptr<RowOrigin> generated_rows(const TableSpec& spec, std::size_t layer_index, const Shard& shard,
                                          std::uint64_t seed);
std::shared_ptr<const TableRows> generated_table(const TableSpec& spec, std::uint64_t seed);

// The rows of a model's safetensors checkpoint: a folder with model.safetensors.index.json, a folder of *.safetensors files,
// or one such file. spec.tensors names the tensors; each is [rows, values] (leading dimensions multiply) at any offset.
//   record fp8_e4m3_block32  weight F8_E4M3, scale F8_E8M0, U8, F32 or BF16
//   record bf16              weight BF16; or F8_E4M3 with such a scale, as value * scale in FP32, rounded to nearest even
// A scale tensor has a number a row and block of equal length, one a row, or one in all. Scales that are no E8M0 must be
// powers of two where the record stores E8M0. Rows behind the last head that the checkpoint lacks (padding) are zeros.
// The fingerprint is made of the used files' sizes and headers, the tensors' names and some of their rows' bytes.
// Throws UsageError naming file, tensor and what is wrong with it: names that the checkpoint lacks (with some that it has),
// numbers of rows or values other than the table's, dtypes that make no record, malformed files.
std::shared_ptr<const TableRows> checkpoint_table(const TableSpec& spec, const std::string& path);

}  // namespace slacktier
