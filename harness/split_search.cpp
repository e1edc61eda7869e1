#include "harness/split_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "platforms/error.hpp"
#include "tier/resident_table.hpp"

namespace slacktier {
namespace {

struct Split {
  int first = 0, second = 0;
  std::uint64_t rows1 = 0, rows2 = 0;
};

Split split_of(const Placement& placement) {
  std::vector<std::pair<int, std::uint64_t>> reading;
  for (const auto& [k, layer] : placement.layers)
    if (!is_resident_source(layer.source)) reading.emplace_back(k, layer.cache_rows_per_rank);
  if (reading.size() != 2)
    throw UsageError(fmt::format("--controller: {}: {} layers are read in pages; it splits a cache between two",
                                 placement.name, reading.size()));
  if (reading[0].second + reading[1].second == 0)
    throw UsageError(fmt::format(
        "--controller: {}: no layer has a cache to share: give cache_rows_per_rank in the placement", placement.name));
  if (placement.cache_policy == "static")
    throw UsageError(
        fmt::format("--controller: {}: a static cache has the rows that it was given; use another policy", placement.name));
  return {reading[0].first, reading[1].first, reading[0].second, reading[1].second};
}

SplitControllerOptions controller_options(const Split& split, const SplitSearchOptions& options) {
  SplitControllerOptions out;
  out.first = static_cast<double>(split.rows1) / static_cast<double>(split.rows1 + split.rows2);
  out.noise_ms = options.noise_ms;
  return out;
}

}  // namespace

Placement with_room_to_split(const Placement& placement) {
  const Split split = split_of(placement);
  Placement out = placement;
  for (const int k : {split.first, split.second})
    out.layers.at(k).cache_rows_reserved_per_rank =
        std::max(out.layers.at(k).cache_rows_reserved_per_rank, split.rows1 + split.rows2);
  return out;
}

SplitSearch::SplitSearch(const Placement& placement, const SplitSearchOptions& options)
    : options_(options), controller_(controller_options(split_of(placement), options)) {
  const Split split = split_of(placement);
  first_ = split.first;
  second_ = split.second;
  budget_ = split.rows1 + split.rows2;
}

bool SplitSearch::step(double stalled_ms) {
  ++steps_;
  if (settling_ > 0) {
    --settling_;
    return false;
  }
  sum_ms_ += stalled_ms;
  if (++observed_ < options_.observed_steps) return false;
  const double share = controller_.share(), mean = sum_ms_ / observed_;
  observations_.push_back({steps_, share, mean});
  sum_ms_ = 0;
  observed_ = 0;
  controller_.observe(mean);
  if (controller_.share() == share) return false;
  settling_ = options_.settle_steps;
  return true;
}

std::uint64_t SplitSearch::rows(int k) const {
  const std::uint64_t first = split_rows(controller_.share(), budget_);
  return k == first_ ? first : budget_ - first;
}

Json SplitSearch::describe() const {
  Json json = {{"layers", {first_, second_}},
               {"rows_per_rank", budget_},
               {"share", controller_.best()},
               {"holding", controller_.holding()},
               {"observations", Json::array()}};
  for (const Observation& o : observations_)
    json["observations"].push_back({{"step", o.step}, {"share", o.share}, {"stall_ms", o.stall_ms}});
  return json;
}

}  // namespace slacktier
