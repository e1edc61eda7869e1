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

class RowOrigin {
 public:
  virtual ~RowOrigin() = default;
  // Writes the record of a local row of the shard (row_bytes bytes). Thread-safe. Throws std::system_error where bytes are
  // read and the read fails.
  virtual void row(std::uint64_t local_row, std::byte* out) const = 0;
  // "generated seed=S" or the files read.
  virtual std::string describe() const = 0;
};

// Random bytes from (table fingerprint, layer, global row, seed): any row can be written without holding the table. E4M3
// values take every bit pattern; scales are drawn from [117, 137] with one in 1,024 taken from all 256, so NaN, zero and
// extreme scales occur. BF16 rows are random bit patterns.
std::unique_ptr<RowOrigin> generated_rows(const TableSpec& spec, std::size_t layer_index, const Shard& shard,
                                          std::uint64_t seed);

}  // namespace slacktier
