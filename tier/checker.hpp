// Checks gathered rows bit for bit against their origin, with an arithmetic of its own (numerics.hpp, value by value).
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "tier/descriptor.hpp"
#include "tier/output.hpp"
#include "tier/pages.hpp"
#include "tier/rows.hpp"
#include "tier/shard.hpp"
#include "tier/table.hpp"

namespace slacktier {

struct CheckReport {
  std::uint64_t checked = 0;  // lookups compared, those delivered as zeros included
  std::uint64_t mismatches = 0;
  std::uint64_t pages = 0;        // pages whose whole checksum was compared
  std::uint64_t skipped = 0;      // owned rows that were never seen; their output must be zeros
  std::uint64_t undelivered = 0;  // owned rows that the tier itself reported as failed; their output must be zeros
  std::string first_mismatch;     // layer, token, column, row, position and both values; or the page and its fault
};

class RowChecker {
 public:
  RowChecker(const TableSpec& spec, std::size_t layer_index, const Shard& shard, const PageGeometry& geometry, PageFold fold,
             const RowOrigin& origin, const std::uint64_t* seen = nullptr, OutputFormat output = OutputFormat::bf16);

  // `rows` is [tokens][columns] global rows, `out` [tokens][columns][row_values] of the output's numbers. An owned row of an
  // active token must equal its origin, unless its descriptor says zero (it failed, and the status said so); every other
  // lookup must be zeros, and so must rows whose bit of `seen` (a bitmap of local rows) is clear. Checks every `stride`-th
  // lookup from `offset` on. Adds to `report`.
  void check(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active,
             std::span<const Descriptor> descriptors, const void* out, CheckReport& report, std::size_t stride = 1,
             std::size_t offset = 0) const;

 private:
  const TableSpec& spec_;
  int layer_;
  const Shard& shard_;
  PageGeometry geometry_;
  PageFold fold_;
  const RowOrigin& origin_;
  const std::uint64_t* seen_;
  OutputFormat output_;
};

}  // namespace slacktier
