#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "harness/report/parts.hpp"
#include "reports/exposure_fit.hpp"
#include "reports/misses_file.hpp"
#include "reports/reads_file.hpp"
#include "reports/results_file.hpp"
#include "reports/sample_files.hpp"
#include "reports/windows_file.hpp"
#include "reports/windows_table.hpp"

namespace slacktier::report {
namespace {

struct Series {
  std::string label, style;
  Json x = Json::array(), y = Json::array(), lo = Json::array(), hi = Json::array();
  bool bars = false;  // lo and hi are intervals around y

  void add(const Json& at, double value) { x.push_back(at), y.push_back(value); }
  void add(const Json& at, double value, std::optional<double> from, std::optional<double> to) {
    add(at, value);
    bars = true;
    lo.push_back(from && to ? Json(*from) : Json(nullptr));
    hi.push_back(from && to ? Json(*to) : Json(nullptr));
  }
  void span(const std::string& row, double from, double to) { x.push_back(row), lo.push_back(from), hi.push_back(to); }
  Json json() const {
    Json out = {{"label", label}, {"style", style}, {"x", x}, {"y", y}};
    if (bars || style == "spans") out["lo"] = lo, out["hi"] = hi;
    return out;
  }
};

class Figures {
 public:
  explicit Figures(std::string prefix) : prefix_(std::move(prefix)) {}
  // A figure of series without a point says nothing and is left out.
  void add(const std::string& title, const std::string& x_label, const std::string& y_label,
           const std::vector<Series>& series, const std::string& description, const Json& more = Json::object()) {
    Json figure = {{"id", fmt::format("{}-{}", prefix_, figures_.size() + 1)},
                   {"title", title},
                   {"x_label", x_label},
                   {"y_label", y_label},
                   {"description", description}};
    figure.update(more);
    figure["series"] = Json::array();
    for (const Series& one : series)
      if (!one.x.empty()) figure["series"].push_back(one.json());
    if (!figure["series"].empty()) figures_.push_back(figure);
  }
  std::vector<Json> take() { return std::move(figures_); }

 private:
  std::string prefix_;
  std::vector<Json> figures_;
};

std::set<std::string> workloads_of(const std::vector<ConfigurationResult>& all) {
  std::set<std::string> names;
  for (const ConfigurationResult& one : all) names.insert(one.workload);
  return names;
}

// s + T_k of the slowest rank beside W_k, and the steps' slowdown: the paper's first figure.
void read_times(Figures& figures, const std::vector<ConfigurationResult>& all) {
  for (const std::string& workload : workloads_of(all)) {
    Series arrive{"s + T: last page has arrived", "bars"}, window{"W: the layer needs its rows", "ticks"};
    for (const ConfigurationResult& one : all) {
      if (one.workload != workload) continue;
      std::vector<double> resolve;
      for (const LayerResult& layer : one.layers) {
        double latest = 0;
        for (std::size_t r = 0; r < layer.ranks.size(); ++r) {
          const RankResult& rank = layer.ranks[r];
          if (resolve.size() <= r) resolve.resize(r + 1, -1);
          if (resolve[r] < 0 && rank.t_submit_us.mean) resolve[r] = *rank.t_submit_us.mean;
          if (rank.t_done_us.mean && resolve[r] >= 0) latest = std::max(latest, (resolve[r] + *rank.t_done_us.mean) / 1e3);
        }
        if (!(latest > 0)) continue;
        const std::string row = fmt::format("{}, L{}", one.name, layer.k);
        arrive.add(row, latest);
        if (layer.window_ms) window.add(row, *layer.window_ms);
      }
    }
    figures.add(
        fmt::format("Read times beside windows, {}", workload), "ms from the step's begin", "", {arrive, window},
        "For each placement and layer, when its last page arrives on average on the slowest rank, beside the time at which "
        "the layer needs it.");
  }
}

void distributions(Figures& figures, const std::vector<ConfigurationResult>& all, const std::string& file) {
  for (const std::string& workload : workloads_of(all)) {
    std::vector<Series> series;
    for (const ConfigurationResult& one : all) {
      if (one.workload != workload || !one.samples) continue;
      const auto samples = samples_of(file, *one.samples);
      if (!samples) continue;
      std::vector<double> steps = samples->as_double();
      if (steps.empty()) continue;
      std::sort(steps.begin(), steps.end());
      Series curve{one.name, "line"};
      constexpr int points = 200;
      for (int i = 0; i <= points; ++i) {
        const auto at = static_cast<std::size_t>(std::llround(static_cast<double>(steps.size() - 1) * i / points));
        curve.add(steps[at], static_cast<double>(i) / points);
      }
      series.push_back(curve);
    }
    figures.add(fmt::format("Distribution of step times, {}", workload), "step, ms", "share of steps not longer", series,
                "Cumulative distribution of the measured decode steps of each placement.");
  }
}

// Slowdown against the share of the cache that the first layer gets.
void splits(Figures& figures, const std::vector<ConfigurationResult>& all) {
  std::map<std::string, std::map<double, const ConfigurationResult*>> by_load;
  for (const ConfigurationResult& one : all) {
    if (!one.slowdown || !one.placement.contains("layers")) continue;
    double sum = 0, first = -1;
    std::string disks;
    for (const auto& [k, layer] : one.placement["layers"].items()) {
      if (!layer.contains("cache_rows_per_rank")) continue;
      const double rows = layer["cache_rows_per_rank"].get<double>();
      if (first < 0) first = rows;
      sum += rows;
      disks = fmt::format("{} {} disk(s)", layer.value("source", ""), layer.value("disks", 1));
    }
    if (sum > 0 && one.placement["layers"].size() > 1) by_load[one.workload + ", " + disks][first / sum] = &one;
  }
  std::vector<Series> series;
  for (const auto& [load, points] : by_load) {
    if (points.size() < 2) continue;
    Series curve{load, "both"};
    for (const auto& [f, one] : points)
      curve.add(f, one->slowdown->mean_pct.estimate, one->slowdown->mean_pct.lo, one->slowdown->mean_pct.hi);
    series.push_back(curve);
  }
  figures.add("Slowdown against the split of the cache", "f: share of the first layer", "slowdown, %", series,
              "Slowdown of the mean step for each share of the cache that the first layer gets.");
}

void slowdowns(Figures& figures, const std::vector<ConfigurationResult>& all) {
  std::vector<Series> series;
  for (const std::string& workload : workloads_of(all)) {
    Series bars{workload, "bars"};
    for (const ConfigurationResult& one : all)
      if (one.workload == workload && one.slowdown)
        bars.add(one.name, one.slowdown->mean_pct.estimate, one.slowdown->mean_pct.lo, one.slowdown->mean_pct.hi);
    series.push_back(bars);
  }
  figures.add("Slowdown of each placement", "slowdown of the mean step, %", "", series,
              "Slowdown of the mean decode step of each placement against the baseline, with its 95% interval.");
}

// What a mean step does, rank by rank, of the placements that cost most.
void timelines(Figures& figures, const std::vector<ConfigurationResult>& all) {
  std::vector<const ConfigurationResult*> dearest;
  for (const ConfigurationResult& one : all)
    if (one.slowdown) dearest.push_back(&one);
  std::stable_sort(dearest.begin(), dearest.end(), [](const auto* a, const auto* b) {
    return a->slowdown->mean_ms.estimate > b->slowdown->mean_ms.estimate;
  });
  for (std::size_t i = 0; i < std::min<std::size_t>(2, dearest.size()); ++i) {
    const ConfigurationResult& one = *dearest[i];
    Series before{"until its first page is submitted", "spans"}, reading{"reading", "spans"},
        stall{"the model waits", "spans"};
    std::vector<double> resolve;
    for (const LayerResult& layer : one.layers)
      for (std::size_t r = 0; r < layer.ranks.size(); ++r) {
        const RankResult& rank = layer.ranks[r];
        const std::string row = fmt::format("L{}, rank {}", layer.k, rank.rank);
        if (resolve.size() <= r) resolve.resize(r + 1, -1);
        if (!rank.t_submit_us.mean) continue;
        if (resolve[r] < 0) resolve[r] = *rank.t_submit_us.mean;
        before.span(row, 0, *rank.t_submit_us.mean / 1e3);
        if (rank.t_done_us.mean)
          reading.span(row, *rank.t_submit_us.mean / 1e3,
                       std::max(*rank.t_submit_us.mean, resolve[r] + *rank.t_done_us.mean) / 1e3);
        if (rank.stall_us.mean && *rank.stall_us.mean > 0 && rank.t_open_us.mean)
          stall.span(row + " gate", std::max(0.0, *rank.t_open_us.mean - *rank.stall_us.mean) / 1e3,
                     *rank.t_open_us.mean / 1e3);
      }
    figures.add(
        fmt::format("A mean step of {}, {}", one.name, one.workload), "ms from the step's begin", "",
        {before, reading, stall},
        "When the pages of each layer and rank are submitted and have arrived, and how long the model waits at the gate.");
  }
}

void windows(Figures& figures, const Envelope& envelope) {
  std::vector<Series> series;
  for (const PlotSeries& one : windows_plot({envelope}, false).series) {
    Series curve{one.label, "both"};
    for (const PlotPoint& p : one.points) curve.add(p.x, p.y, p.lo, p.hi);
    series.push_back(curve);
  }
  figures.add("Prefetch windows over depth", "layer k", "window, ms", series,
              "How long each layer can wait for its rows, with its 95% interval.", {{"y_from_zero", true}});
}

void reads(Figures& figures, const Envelope& envelope) {
  for (const ReadResult& result : read_results(envelope)) {
    if (result.fit.empty()) continue;
    std::vector<Series> fitted, left;
    for (const ReadFit& fit : result.fit) {
      Series points{fmt::format("layer {}", fit.k), "marks"}, residuals{fmt::format("layer {}", fit.k), "marks"};
      for (const ReadPoint& point : result.points)
        if (const auto t = point.t_us.find(fit.k); t != point.t_us.end() && t->second.mean) {
          const double line = fit.at(point.pages_per_rank) / 1e3, measured = *t->second.mean / 1e3;
          points.add(line, measured);
          residuals.add(line, measured - line);
        }
      fitted.push_back(points);
      left.push_back(residuals);
    }
    double longest = 0;
    for (const Series& one : fitted)
      for (const Json& x : one.x) longest = std::max(longest, x.get<double>());
    Series same{"equal", "line"};
    if (longest > 0) same.add(0, 0), same.add(longest, longest);
    fitted.push_back(same);
    const std::string load = fmt::format("{}, {} disk(s), {} thread(s)", result.source, result.disks, result.threads);
    figures.add("Read time, measured against the fit: " + load, "a + sum of b x pages, ms", "measured T, ms", fitted,
                "Measured mean read times against those of the fitted line.");
    figures.add("Residuals of the fit: " + load, "fitted T, ms", "measured - fitted, ms", left,
                "What the fitted line leaves over.");
  }
}

void miss_curves(Figures& figures, const Envelope& envelope) {
  for (const MissesResult& result : misses_results(envelope)) {
    std::vector<Series> hits, pages;
    for (const LayerMisses& layer : result.layers)
      for (const RankMisses& rank : layer.ranks) {
        const std::string label = fmt::format("L{}, rank {}", layer.k, rank.rank);
        Series hit{label, "both"}, page{label, "both"};
        for (const MissPoint& point : rank.curve) {
          if (const auto share = point.decode_hit ? point.decode_hit : point.hit)
            hit.add(static_cast<double>(point.rows), 100 * *share);
          if (point.pages_mean) page.add(static_cast<double>(point.rows), *point.pages_mean);
        }
        hits.push_back(hit);
        pages.push_back(page);
      }
    const std::string of =
        fmt::format("{}{}, {}", result.workload.empty() ? "" : result.workload + ", ", result.policy, result.phase);
    const Json axis = {{"x_log", 1000}, {"y_from_zero", true}};
    figures.add("Hit rate against cache size: " + of, "rows per rank", "hits, %", hits,
                "Hit rate for each cache size, layer and rank.", axis);
    figures.add("Pages a step against cache size: " + of, "rows per rank", "pages", pages,
                "Pages read per step for each cache size, layer and rank.", axis);
  }
}

void exposure(Figures& figures, const Envelope& envelope) {
  Series points{"runs", "marks"}, same{"equal", "line"}, left{"runs", "marks"};
  double most = 0;
  for (const ExposurePoint& p : exposure_of(envelope).points) {
    points.add(p.predicted_ms, p.measured_ms, p.lo_ms, p.hi_ms);
    left.add(p.predicted_ms, p.measured_ms - p.predicted_ms);
    most = std::max(most, p.predicted_ms);
  }
  same.add(0, 0), same.add(most, most);
  figures.add("Measured slowdown against Eq. 1", "predicted, ms", "measured, ms", {points, same},
              "Measured slowdowns against the model's.");
  figures.add("Residuals of the exposure model", "predicted, ms", "measured - predicted, ms", {left},
              "What the model leaves over.");
}

}  // namespace

std::vector<Json> figures_of(const Envelope& envelope, std::size_t number) {
  Figures figures(fmt::format("figure-{}", number));
  if (envelope.kind == "results") {
    const std::vector<ConfigurationResult> all = configurations(envelope);
    slowdowns(figures, all);
    read_times(figures, all);
    splits(figures, all);
    distributions(figures, all, envelope.file);
    timelines(figures, all);
  } else if (envelope.kind == "windows") {
    windows(figures, envelope);
  } else if (envelope.kind == "reads") {
    reads(figures, envelope);
  } else if (envelope.kind == "misses") {
    miss_curves(figures, envelope);
  } else if (envelope.kind == "exposure") {
    exposure(figures, envelope);
  }
  return figures.take();
}

std::vector<Json> figures_across(const std::vector<Envelope>& files) {
  Figures figures("across");
  std::map<int, double> window;
  for (const Envelope& file : files)
    if (file.kind == "windows")
      for (const WindowsResult& result : windows_results(file))
        for (const LayerWindow& layer : result.layers)
          if (layer.w_ms) window.try_emplace(layer.k, *layer.w_ms);
  for (const Envelope& file : files) {
    if (file.kind != "reads" || window.empty()) continue;
    for (const ReadResult& result : read_results(file)) {
      std::map<int, Series> by_layer;
      for (const ReadPoint& point : result.points)
        for (const auto& [k, t] : point.t_us)
          if (const auto pages = point.pages_per_rank.find(k); t.mean && pages != point.pages_per_rank.end()) {
            Series& curve = by_layer.try_emplace(k, Series{fmt::format("T of layer {}", k), "marks"}).first->second;
            curve.add(pages->second, *t.mean / 1e3);
          }
      std::vector<Series> series;
      for (const auto& [k, curve] : by_layer) series.push_back(curve);
      for (const auto& [k, curve] : by_layer)
        if (const auto w = window.find(k); w != window.end()) {
          Series level{fmt::format("W of layer {}", k), "level"};
          level.add(0, w->second);
          series.push_back(level);
        }
      figures.add(fmt::format("Read times beside windows: {}, {} disk(s), {} thread(s)", result.source, result.disks,
                              result.threads),
                  "pages per rank", "ms", series, "Mean read times by number of pages, beside the windows of the layers.",
                  {{"y_from_zero", true}});
    }
  }
  std::map<std::string, std::map<std::int64_t, const ConfigurationResult*>> by_name;
  std::vector<std::vector<ConfigurationResult>> kept;
  for (const Envelope& file : files) {
    if (file.kind != "results" || !file.settings.contains("sessions")) continue;
    kept.push_back(configurations(file));
    for (const ConfigurationResult& one : kept.back())
      if (one.slowdown) by_name[one.name + ", " + one.workload][file.settings["sessions"].get<std::int64_t>()] = &one;
  }
  std::vector<Series> series;
  for (const auto& [name, points] : by_name) {
    if (points.size() < 2) continue;
    Series curve{name, "both"};
    for (const auto& [sessions, one] : points)
      curve.add(sessions, one->slowdown->mean_pct.estimate, one->slowdown->mean_pct.lo, one->slowdown->mean_pct.hi);
    series.push_back(curve);
  }
  figures.add("Slowdown against sessions", "sessions B", "slowdown, %", series,
              "Slowdown of each placement for each number of sessions.");
  return figures.take();
}

}  // namespace slacktier::report
