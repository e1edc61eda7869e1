#include "iobench/read_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "reports/reads_file.hpp"

namespace slacktier {

Plot read_time_plot(const Envelope& reads) {
  Plot plot;
  plot.title = "Time until a layer's last page has arrived";
  plot.x_label = "pages of the layer, per rank";
  plot.y_label = "T, ms";
  const auto results = read_results(reads);
  std::map<int, double> windows;
  std::int64_t most_pages = 0;
  for (const ReadResult& result : results) {
    std::string load;
    if (results.size() > 1)
      load = fmt::format(", {} thread(s), {} rank(s), {} tenant(s), {}", result.threads, result.ranks_on_disk,
                         result.tenants, result.order);
    std::map<int, PlotSeries> measured;
    std::map<int, std::int64_t> most;
    for (const ReadPoint& point : result.points) {
      // A prefill's pages, far beyond the fitted line, would push all others into a corner.
      if (std::any_of(result.fit.begin(), result.fit.end(),
                      [&](const ReadFit& fit) { return fit.extrapolates(point.pages_per_rank); }))
        continue;
      for (const auto& [k, t] : point.t_us) {
        const std::int64_t pages = point.pages_per_rank.at(k);
        most[k] = std::max(most[k], pages);
        most_pages = std::max(most_pages, pages);
        if (t.mean && pages > 0) measured[k].points.push_back({static_cast<double>(pages), *t.mean / 1e3, {}, {}});
      }
    }
    for (auto& [k, series] : measured) {
      series.label = fmt::format("layer {} measured{}", k, load);
      series.line = false;
      plot.series.push_back(series);
    }
    for (const ReadFit& fit : result.fit) {
      PlotSeries line;
      line.label = fmt::format("layer {} fitted, others at their most{}", fit.k, load);
      line.marks = false;
      const auto range = fit.range.find(fit.k);
      if (range == fit.range.end()) continue;
      for (const std::int64_t pages : {range->second.first, range->second.second}) {
        auto at = most;
        at[fit.k] = pages;
        line.points.push_back({static_cast<double>(pages), fit.at(at) / 1e3, {}, {}});
      }
      plot.series.push_back(line);
    }
    for (const ReadVerdict& verdict : result.verdicts) windows[verdict.k] = verdict.window_ms;
  }
  for (const auto& [k, window_ms] : windows) {
    PlotSeries level;
    level.label = fmt::format("layer {} window", k);
    level.marks = false;
    level.points = {{0, window_ms, {}, {}}, {static_cast<double>(most_pages), window_ms, {}, {}}};
    plot.series.push_back(level);
  }
  return plot;
}

}  // namespace slacktier
