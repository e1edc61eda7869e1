#include "iobench/table_pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "reports/error.hpp"
#include "reports/field_reader.hpp"
#include "reports/results.hpp"

namespace slacktier {

TablePages uncached_pages(const TableSpec& spec, ShardMap map, std::uint32_t ranks, std::uint32_t batch) {
  TablePages result;
  for (std::size_t l = 0; l < spec.layers.size(); ++l) {
    // A rank's owned lookups per token are the sum of its shares of the columns.
    double most = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const Shard shard = make_shard(spec, l, map, ranks, rank);
      double columns = 0;
      for (std::size_t c = 0; c < shard.first.size(); ++c)
        if (shard.first[c] < shard.last[c])
          columns += static_cast<double>(shard.last[c] - shard.first[c]) /
                     static_cast<double>(spec.layers[l].head_offset[c + 1] - spec.layers[l].head_offset[c]);
      most = std::max(most, columns);
    }
    result.pages.push_back({spec.layers[l].layer, static_cast<std::uint32_t>(std::lround(most * batch))});
  }
  result.label = fmt::format("pages: {} at B = {} without a cache, R = {} {}, at most one a lookup", spec.name, batch, ranks,
                             to_string(map));
  return result;
}

TablePages pages_from_misses(const std::string& path, const std::vector<int>& layers, std::uint64_t cache_rows,
                             std::uint32_t batch) {
  const Envelope envelope = read_envelope(path, "misses");
  TablePages result;
  if (envelope.results.empty()) throw InputError(path + ": /results is empty");
  const FieldReader first(envelope.results[0], path + ": /results/0");
  const auto sessions = first.get<double>("sessions");
  for (const int wanted : layers) {
    std::optional<double> most;
    for (const FieldReader& layer : first.objects("layers")) {
      if (layer.get<int>("k") != wanted) continue;
      for (const FieldReader& rank : layer.objects("ranks")) {
        std::optional<double> pages;
        std::uint64_t at = 0;
        for (const FieldReader& point : rank.objects("curve"))
          if (const auto rows = point.get<std::uint64_t>("rows"); rows <= cache_rows && (!pages || rows >= at)) {
            pages = point.get<double>("pages_mean");
            at = rows;
          }
        if (!pages)
          throw InputError(fmt::format("{}: layer {}: the curve begins above --cache-rows {}", path, wanted, cache_rows));
        most = std::max(most.value_or(0), *pages);
      }
    }
    if (!most) throw InputError(fmt::format("{}: has no layer {}", path, wanted));
    result.pages.push_back({wanted, static_cast<std::uint32_t>(std::lround(*most * batch / sessions))});
  }
  result.label = fmt::format("pages: {}, {} cached rows a layer and rank, B = {}", path, cache_rows, batch);
  return result;
}

}  // namespace slacktier
