#include "tier/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tier/numerics.hpp"

namespace slacktier {
namespace {

// All 65,536 (scale, value) results; built once from the exact definition.
template <class Number>
using Results = std::array<std::array<Number, 256>, 256>;

template <class Number, Number (*definition)(std::uint8_t, std::uint8_t)>
const Results<Number>& exact_results() {
  static const auto table = [] {
    auto t = std::make_unique<Results<Number>>();
    for (std::size_t s = 0; s < 256; ++s)
      for (std::size_t v = 0; v < 256; ++v)
        (*t)[s][v] = definition(static_cast<std::uint8_t>(v), static_cast<std::uint8_t>(s));
    return t;
  }();
  return *table;
}

// What a record must be delivered as.
template <class Number>
void expect(const TableSpec& spec, const std::byte* record, Number* out) {
  constexpr bool fp32 = sizeof(Number) == 4;
  if (spec.format == RecordFormat::bf16) {
    for (std::uint32_t v = 0; v < spec.row_values; ++v) {
      std::uint16_t value;
      std::memcpy(&value, record + 2 * v, sizeof value);
      if ((value & 0x7FFFu) > 0x7F80u) value = bf16_nan;
      out[v] = static_cast<Number>(std::uint32_t{value} << (fp32 ? 16 : 0));
    }
    return;
  }
  const Results<Number>* exact = nullptr;
  if constexpr (fp32)
    exact = &exact_results<std::uint32_t, dequantise_fp32>();
  else
    exact = &exact_results<std::uint16_t, dequantise_bf16>();
  for (std::uint32_t v = 0; v < spec.row_values; ++v)
    out[v] = (*exact)[static_cast<std::uint8_t>(record[spec.row_values + v / 32])][static_cast<std::uint8_t>(record[v])];
}

}  // namespace

RowChecker::RowChecker(const TableSpec& spec, std::size_t layer_index, const Shard& shard, const PageGeometry& geometry,
                       PageFold fold, const RowOrigin& origin, const std::uint64_t* seen, OutputFormat output)
    : spec_(spec),
      layer_(spec.layers[layer_index].layer),
      shard_(shard),
      geometry_(geometry),
      fold_(fold),
      origin_(origin),
      seen_(seen),
      output_(output) {}

void RowChecker::check(std::span<const std::uint32_t> rows, std::span<const std::uint8_t> active,
                       std::span<const Descriptor> descriptors, const void* out, CheckReport& report, std::size_t stride,
                       std::size_t offset) const {
  const std::size_t columns = spec_.rows_per_token();
  const bool fp32 = output_ == OutputFormat::fp32;
  const std::size_t number = output_bytes(output_), row = number * spec_.row_values;
  std::vector<std::byte> record(spec_.row_bytes);
  std::vector<std::byte> expected(row);
  for (std::size_t i = offset; i < rows.size(); i += stride) {
    const std::size_t c = i % columns;
    const bool live = active.empty() || active[i / columns];
    const bool owned = live && rows[i] >= shard_.first[c] && rows[i] < shard_.last[c];
    std::fill(expected.begin(), expected.end(), std::byte{0});
    const std::uint32_t local = owned ? rows[i] - shard_.first[c] + shard_.local[c] : 0;
    if (owned && seen_ && (seen_[local / 64] >> (local % 64) & 1) == 0) {
      ++report.skipped;
    } else if (owned && descriptors[i].kind() == LookupKind::zero) {
      ++report.undelivered;
    } else if (owned) {
      origin_.row(fold_.row(local, geometry_), record.data());
      if (fp32)
        expect(spec_, record.data(), reinterpret_cast<std::uint32_t*>(expected.data()));
      else
        expect(spec_, record.data(), reinterpret_cast<std::uint16_t*>(expected.data()));
    }
    ++report.checked;
    const std::byte* got = static_cast<const std::byte*>(out) + i * row;
    const std::byte* want = expected.data();
    if (std::memcmp(got, want, row) == 0) continue;
    ++report.mismatches;
    if (!report.first_mismatch.empty()) continue;
    std::size_t v = 0;
    while (std::memcmp(got + v * number, want + v * number, number) == 0) ++v;
    std::uint32_t got_bits = 0, want_bits = 0;
    std::memcpy(&got_bits, got + v * number, number);
    std::memcpy(&want_bits, want + v * number, number);
    report.first_mismatch =
        fmt::format("layer {} token {} column {} row {} value {}: got {:#0{}x}, origin has {:#0{}x}", layer_, i / columns, c,
                    rows[i], v, got_bits, 2 * number + 2, want_bits, 2 * number + 2);
  }
}

}  // namespace slacktier
