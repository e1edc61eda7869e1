#include "tier/checker.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tier/numerics.hpp"

namespace slacktier {
namespace {

// All 65,536 (scale, value) results; built once from the exact definition.
const std::array<std::array<std::uint16_t, 256>, 256>& exact_bf16() {
  static const auto table = [] {
    auto t = std::make_unique<std::array<std::array<std::uint16_t, 256>, 256>>();
    for (int s = 0; s < 256; ++s)
      for (int v = 0; v < 256; ++v)
        (*t)[static_cast<std::size_t>(s)][static_cast<std::size_t>(v)] =
            dequantise_bf16(static_cast<std::uint8_t>(v), static_cast<std::uint8_t>(s));
    return t;
  }();
  return *table;
}

}  // namespace

RowChecker::RowChecker(const TableSpec& spec, std::size_t layer_index, const Shard& shard, const PageGeometry& geometry,
                       PageFold fold, const RowOrigin& origin, const std::uint64_t* seen)
    : spec_(spec),
      layer_(spec.layers[layer_index].layer),
      shard_(shard),
      geometry_(geometry),
      fold_(fold),
      origin_(origin),
      seen_(seen) {}

void RowChecker::check(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active,
                       std::span<const Descriptor> descriptors, const std::uint16_t* out, CheckReport& report,
                       std::size_t stride, std::size_t offset) const {
  const std::size_t columns = spec_.rows_per_token();
  std::vector<std::byte> record(spec_.row_bytes);
  std::vector<std::uint16_t> expected(spec_.row_values);
  for (std::size_t i = offset; i < rows.size(); i += stride) {
    const std::size_t c = i % columns;
    const bool live = active.empty() || active[i / columns];
    const bool owned = live && rows[i] >= shard_.first[c] && rows[i] < shard_.last[c];
    std::fill(expected.begin(), expected.end(), std::uint16_t{0});
    const std::uint32_t local = owned ? rows[i] - shard_.first[c] + shard_.local[c] : 0;
    if (owned && seen_ && (seen_[local / 64] >> (local % 64) & 1) == 0) {
      ++report.skipped;
    } else if (owned && descriptors[i].kind() == LookupKind::zero) {
      ++report.undelivered;
    } else if (owned) {
      origin_.row(fold_.row(local, geometry_), record.data());
      if (spec_.format == RecordFormat::bf16) {
        std::memcpy(expected.data(), record.data(), record.size());
        for (auto& value : expected)
          if ((value & 0x7FFFu) > 0x7F80u) value = bf16_nan;
      } else {
        for (std::uint32_t v = 0; v < spec_.row_values; ++v)
          expected[v] = exact_bf16()[static_cast<std::uint8_t>(record[spec_.row_values + v / 32])]
                                    [static_cast<std::uint8_t>(record[v])];
      }
    }
    ++report.checked;
    const std::uint16_t* got = out + i * spec_.row_values;
    if (std::memcmp(got, expected.data(), expected.size() * sizeof(std::uint16_t)) == 0) continue;
    ++report.mismatches;
    if (!report.first_mismatch.empty()) continue;
    std::size_t v = 0;
    while (got[v] == expected[v]) ++v;
    report.first_mismatch = fmt::format("layer {} token {} column {} row {} value {}: got {:#06x}, origin has {:#06x}",
                                        layer_, i / columns, c, rows[i], v, got[v], expected[v]);
  }
}

}  // namespace slacktier
