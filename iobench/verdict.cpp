#include "iobench/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "reports/averages.hpp"
#include "reports/probability.hpp"
#include "reports/samples.hpp"

namespace slacktier {
namespace {

// When all of so many batches are late, the median is, with 97.5% confidence: 0.5^6 < 0.025.
constexpr std::size_t enough_batches = 6;

}  // namespace

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
  if (rounds.size() < 3 && t.size() >= enough_batches && summary.min / 1e3 > room) {
    verdict.fits = Fits::no;
    verdict.reason =
        fmt::format("even the fastest of {} batches came {:.2f} ms too late", t.size(), summary.min / 1e3 - room);
  } else if (rounds.size() < 3) {
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
