// A `misses` file as tables and as a figure.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "reports/misses_file.hpp"

namespace slacktier {
namespace {

Cell percent(const std::optional<double>& share) { return share ? Cell::number(100 * *share, 2) : Cell(); }

std::string title_of(const MissesResult& result) {
  std::string title = result.workload.empty() ? result.policy : result.workload + ", " + result.policy;
  title += fmt::format(", {} sessions", result.sessions);
  if (result.q > 1) title += fmt::format(", {} tokens each", result.q);
  title += ", " + result.phase;
  if (result.cache != "shared") title += ", a cache for each session";
  if (result.idle_hi > 0) title += fmt::format(", pauses of {} to {} steps", result.idle_lo, result.idle_hi);
  return title;
}

}  // namespace

std::vector<Table> misses_tables(const Envelope& envelope) {
  std::vector<Table> tables;
  for (const MissesResult& result : misses_results(envelope)) {
    Table table;
    table.title = title_of(result);
    for (const Warning& warning : envelope.warnings) table.head.push_back(warning.message);
    if (result.steps)
      table.head.push_back(fmt::format("{} {} counted after {} of warm-up", *result.steps,
                                       result.phase == "prefill" ? "chunks" : "steps", result.warm_steps.value_or(0)));
    if (result.sampled)
      table.head.push_back(fmt::format("sampled ({}, {:.3g}% of the rows): standard error of a hit rate {:.2f} points",
                                       result.sampled->method, 100 * result.sampled->rate,
                                       100 * result.sampled->error.value_or(0)));
    std::set<int> orders;
    for (const auto& layer : result.layers)
      for (const auto& rank : layer.ranks)
        for (const auto& point : rank.curve)
          for (const auto& [order, share] : point.hit_by_order) orders.insert(order);
    const std::string unit = result.phase == "prefill" ? "per chunk" : "per step";
    const auto column = [&](const std::string& header, const std::string& of) {
      table.columns.push_back({header, of, Align::right, ""});
    };
    column("layer", "");
    column("rank", "");
    column("cache", "rows");
    column("decode hit", "%");
    column("hit", "%");
    for (const int order : orders) column(fmt::format("{}-gram", order), "%");
    for (const char* header : {"misses", "pages", "pages p99"}) column(header, unit);
    column("any miss", "%");
    for (const auto& layer : result.layers)
      for (const auto& rank : layer.ranks)
        for (const auto& point : rank.curve) {
          std::vector<Cell> row = {Cell::count(layer.k), Cell::count(rank.rank),
                                   Cell::count(static_cast<std::int64_t>(point.rows)), percent(point.decode_hit),
                                   percent(point.hit)};
          for (const int order : orders) {
            const auto found = point.hit_by_order.find(order);
            row.push_back(found == point.hit_by_order.end() ? Cell() : percent(found->second));
          }
          row.push_back(Cell::number(point.misses_mean, 1));
          row.push_back(Cell::number(point.pages_mean, 1));
          row.push_back(Cell::number(point.pages_p99, 0));
          row.push_back(percent(point.p_any_miss));
          table.rows.push_back(std::move(row));
        }
    tables.push_back(std::move(table));
  }
  return tables;
}

Plot misses_plot(const Envelope& envelope) {
  const std::vector<MissesResult> results = misses_results(envelope);
  const auto differ = [&](auto field) {
    return std::any_of(results.begin(), results.end(), [&](const auto& r) { return field(r) != field(results.front()); });
  };
  const bool workloads = differ([](const MissesResult& r) { return r.workload; });
  const bool policies = differ([](const MissesResult& r) { return r.policy; });
  const bool phases = differ([](const MissesResult& r) { return r.phase; });
  Plot plot;
  plot.title = "Hit rate against cache capacity";
  plot.x_label = "cache per rank and layer, million rows";
  plot.y_label = "hit rate, %";
  plot.y_max = 100;
  for (const MissesResult& result : results) {
    if (!workloads && !result.workload.empty() && &result == &results.front()) plot.title += ", " + result.workload;
    for (const auto& layer : result.layers)
      for (const auto& rank : layer.ranks) {
        PlotSeries series;
        if (workloads) series.label += result.workload + " ";
        if (policies) series.label += result.policy + " ";
        if (phases) series.label += result.phase + " ";
        series.label += fmt::format("layer {} rank {}", layer.k, rank.rank);
        for (const auto& point : rank.curve)
          if (const auto share = result.phase == "decode" ? point.decode_hit : point.hit)
            series.points.push_back({static_cast<double>(point.rows) / 1e6, 100 * *share, {}, {}});
        if (!series.points.empty()) plot.series.push_back(std::move(series));
      }
  }
  return plot;
}

}  // namespace slacktier
