#include "harness/hot_rows.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "harness/row_counts.hpp"
#include "reports/error.hpp"
#include "reports/results.hpp"

namespace slacktier {

std::map<int, std::vector<std::uint32_t>> read_hot_rows(const std::string& path, const TableSpec& spec) {
  const Envelope file = read_envelope(path, "hot-rows");
  const auto same = [&](const char* field, const std::string& wants) {
    if (file.settings.contains(field) && file.settings[field] != wants)
      throw InputError(
          fmt::format("{}: /settings/{} is {}, this run has \"{}\"", path, field, file.settings[field].dump(), wants));
  };
  same("table", spec.name);
  same("table_fingerprint", spec.fingerprint());
  std::map<int, std::vector<std::uint32_t>> rows;
  for (const auto& [key, list] : file.results["layers"].items()) {
    const std::string place = fmt::format("{}: /results/layers/{}", path, key);
    const LayerTable* table = nullptr;
    for (const auto& layer : spec.layers)
      if (std::to_string(layer.layer) == key) table = &layer;
    if (!table) throw InputError(fmt::format("{}: table {} has no such layer", place, spec.name));
    std::vector<std::uint32_t>& out = rows[table->layer];
    for (const Json& row : list) {
      if (row.get<std::uint64_t>() >= table->rows)
        throw InputError(fmt::format("{}: row {} is beyond the table's {} rows", place, row.dump(), table->rows));
      out.push_back(row.get<std::uint32_t>());
    }
  }
  return rows;
}

std::vector<std::uint32_t> owned_rows(const std::vector<std::uint32_t>& global_rows, const Shard& shard) {
  std::vector<std::uint32_t> local;
  for (const std::uint32_t row : global_rows)
    for (std::size_t c = 0; c < shard.first.size(); ++c)
      if (row >= shard.first[c] && row < shard.last[c]) {
        local.push_back(row - shard.first[c] + shard.local[c]);
        break;
      }
  return local;
}

std::vector<std::uint32_t> learn_hot_rows(const StepTrace& trace, std::uint64_t steps, const TableSpec& spec,
                                          const RowHash& hash, std::size_t layer_index, const Shard& shard, std::size_t n) {
  const auto order = static_cast<std::size_t>(spec.max_ngram);
  const std::size_t columns = spec.rows_per_token();
  RowCounts counts;
  std::vector<std::uint32_t> rows;
  const auto count = [&](std::span<const std::uint32_t> context) {
    const std::size_t begin = rows.size();
    rows.resize(begin + context.size() / order * columns);
    hash.rows(layer_index, context.data(), context.size() / order, rows.data() + begin);
  };
  for (std::uint64_t s = 0; s < steps; ++s) {
    const StepView step = trace.step(s);
    rows.clear();
    count(step.prefill_context);
    for (std::size_t t = 0; t < step.active.size(); ++t)
      if (step.active[t]) count(step.context.subspan(t * order, order));
    std::size_t owned = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t c = i % columns;
      if (rows[i] >= shard.first[c] && rows[i] < shard.last[c]) rows[owned++] = rows[i] - shard.first[c] + shard.local[c];
    }
    counts.add(std::span(rows).first(owned));
  }
  return counts.hottest(n);
}

}  // namespace slacktier
