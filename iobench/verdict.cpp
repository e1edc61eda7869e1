#include "iobench/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <sstream>

#include "platforms/error.hpp"
#include "reports/error.hpp"
#include "reports/field_reader.hpp"
#include "reports/probability.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double finite_positive(const std::string& option, const std::string& text) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::logic_error&) {
  }
  if (used != text.size() || !std::isfinite(value) || value < 0)
    throw UsageError(fmt::format("{}: '{}' is no time in ms; write LAYER:MS,…, such as 1:0.27,14:9.35", option, text));
  return value;
}

Windows windows_of_file(const std::string& path, std::optional<std::uint32_t> batch) {
  const Envelope envelope = read_envelope(path, "windows");
  Windows windows;
  const Json* chosen = nullptr;
  for (const Json& entry : envelope.results)
    if (batch && entry.at("batch") == *batch) chosen = &entry;
  if (!chosen) {
    if (envelope.results.size() != 1)
      throw InputError(
          fmt::format("{}: windows of {} batches; name one of them with --batch", path, envelope.results.size()));
    chosen = &envelope.results[0];
  }
  const FieldReader in(*chosen, path + ": /results");
  windows.label = fmt::format("windows: {} at B = {}", path, in.at("batch").dump());
  if (batch && in.at("batch") != *batch) windows.label += fmt::format(", not {}", *batch);
  for (const FieldReader& layer : in.objects("layers"))
    if (const auto w = layer.maybe<double>("w_ms")) windows.ms[layer.get<int>("k")] = *w;
  return windows;
}

}  // namespace

Windows parse_windows(const std::string& text, const std::vector<int>& wanted, std::optional<std::uint32_t> batch) {
  Windows windows;
  if (text.ends_with(".json")) {
    windows = windows_of_file(text, batch);
  } else {
    windows.label = "windows: given, " + text;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
      const std::size_t colon = part.find(':');
      if (colon == std::string::npos || colon == 0 || part.find_first_not_of("0123456789") != colon)
        throw UsageError(fmt::format("--windows {}: '{}' is no LAYER:MS; a file's name ends in .json", text, part));
      windows.ms[std::stoi(part.substr(0, colon))] = finite_positive("--windows", part.substr(colon + 1));
    }
  }
  for (const int k : wanted)
    if (!windows.ms.contains(k)) throw UsageError(fmt::format("--windows {}: has no window of layer {}", text, k));
  return windows;
}

LoadLine line_through(const PointSamples& small, const PointSamples& full, std::size_t layer) {
  const double factor = static_cast<double>(small.pages[layer].pages) / static_cast<double>(full.pages[layer].pages);
  const double at_small = mean(small.t_us[layer]), at_full = mean(full.t_us[layer]);
  const double slope = (at_full - at_small) / (1 - factor);
  return {at_full - slope, slope};
}

LoadLine line_of(const ReadFit& fit, const std::map<int, std::int64_t>& pages) {
  return {fit.a_us, fit.at(pages) - fit.a_us};
}

ReadVerdict judge(double window_ms, double resolve_ms, const PointSamples& point, std::size_t layer,
                  const std::optional<LoadLine>& line, std::optional<std::uint32_t> batch) {
  ReadVerdict verdict;
  verdict.k = point.pages[layer].layer;
  verdict.window_ms = window_ms;
  const std::vector<double>& t = point.t_us[layer];
  if (t.empty()) {
    verdict.reason = "nothing was measured";
    return verdict;
  }
  const double room = window_ms - resolve_ms;
  const Summary summary = summarise(t);
  verdict.headroom_mean_ms = room - summary.mean / 1e3;
  if (summary.p99) verdict.headroom_p99_ms = room - *summary.p99 / 1e3;
  const std::vector<double> rounds = point.round_means(layer);
  if (rounds.size() < 3) {
    verdict.reason = fmt::format("{} rounds; an interval of the mean needs 3", rounds.size());
  } else {
    const Summary between = summarise(rounds);
    const double half = student_quantile(0.975, static_cast<double>(rounds.size() - 1)) * between.stddev /
                        std::sqrt(static_cast<double>(rounds.size()));
    const double lo = (between.mean - half) / 1e3, hi = (between.mean + half) / 1e3;
    if (lo > room) {
      verdict.fits = Fits::no;
      verdict.reason = fmt::format("{:.2f} ms too late on average", summary.mean / 1e3 - room);
    } else if (hi > room) {
      verdict.reason =
          fmt::format("the mean's interval [{:.2f}, {:.2f}] ms covers the {:.2f} ms that are there", lo, hi, room);
    } else if (!summary.p99_bound) {
      verdict.reason = fmt::format("fits on average; a p99 needs {} batches, there are {}", summary.p99_needs, summary.n);
    } else if (*summary.p99_bound / 1e3 > room) {
      verdict.reason = fmt::format("fits on average; the p99 may be {:.2f} ms, {:.2f} ms too late", *summary.p99_bound / 1e3,
                                   *summary.p99_bound / 1e3 - room);
    } else {
      verdict.fits = Fits::yes;
    }
  }
  if (line && line->slope_us > 0) {
    const double factor = std::max(0.0, (room * 1e3 - line->a_us) / line->slope_us);
    verdict.max_tenants = static_cast<std::int64_t>(std::min(factor, 1e6));
    if (batch) verdict.max_batch = static_cast<std::int64_t>(std::min(factor * *batch, 1e9));
  }
  return verdict;
}

}  // namespace slacktier
