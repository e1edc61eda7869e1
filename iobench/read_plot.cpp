#include "iobench/read_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reports/reads_file.hpp"

namespace slacktier {
namespace {

constexpr std::size_t most_loads = 3;  // more in one figure hide each other

// In what the load differs from others of the figure.
std::string differing(const ReadResult& load, const std::vector<ReadResult>& all) {
  std::string text;
  const auto add = [&](const auto& value_of, const std::string& words) {
    if (std::any_of(all.begin(), all.end(), [&](const ReadResult& other) { return value_of(other) != value_of(load); }))
      text += ", " + words;
  };
  add([](const ReadResult& r) { return r.threads; }, fmt::format("{} thread(s)", load.threads));
  add([](const ReadResult& r) { return r.ranks_on_disk; }, fmt::format("{} rank(s)", load.ranks_on_disk));
  add([](const ReadResult& r) { return r.tenants; }, fmt::format("{} tenant(s)", load.tenants));
  add([](const ReadResult& r) { return r.order; }, load.order);
  return text;
}

}  // namespace

Plot read_time_plot(const Envelope& reads) {
  Plot plot;
  plot.title = "Time until a layer's last page has arrived";
  plot.x_label = "pages of the layer, per rank";
  plot.y_label = "T, ms";
  auto results = read_results(reads);
  if (results.size() > most_loads) {
    plot.title += fmt::format(" ({} of {} loads)", most_loads, results.size());
    results.resize(most_loads);
  }
  std::map<int, double> windows;
  std::int64_t most_pages = 0;
  std::size_t colour = 0;
  for (const ReadResult& result : results) {
    const std::string load = differing(result, results);
    std::map<int, std::size_t> colours;
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
      series.colour = colours[k] = colour++;
      plot.series.push_back(series);
    }
    for (const ReadFit& fit : result.fit) {
      PlotSeries line;
      line.label = fmt::format("layer {} fitted, others at their most{}", fit.k, load);
      line.marks = false;
      if (const auto same = colours.find(fit.k); same != colours.end()) line.colour = same->second;
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
    level.colour = colour++;
    level.points = {{0, window_ms, {}, {}}, {static_cast<double>(most_pages), window_ms, {}, {}}};
    plot.series.push_back(level);
  }
  return plot;
}

}  // namespace slacktier
