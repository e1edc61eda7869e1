#include "reports/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace slacktier {

Distribution distribution(const Summary& summary) {
  Distribution d;
  d.n = summary.n;
  if (summary.n == 0) {
    d.reason = "no samples";
    return d;
  }
  d.mean = summary.mean;
  d.p50 = summary.p50;
  d.min = summary.min;
  d.max = summary.max;
  d.p99 = summary.p99;
  if (!d.p99) d.reason = fmt::format("p99 needs {} samples", summary.p99_needs);
  return d;
}

Distribution distribution(std::span<const double> samples) { return distribution(summarise(samples)); }

Distribution tail_distribution(std::span<const double> samples) {
  Distribution d = distribution(samples);
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  if (d.n >= samples_needed(0.9)) d.p90 = percentile_of_sorted(sorted, 0.9);
  if (d.n >= samples_needed(0.999)) d.p999 = percentile_of_sorted(sorted, 0.999);
  return d;
}

Json to_json(const Distribution& d) {
  Json json = {{"n", d.n},
               {"mean", or_null(d.mean)},
               {"p50", or_null(d.p50)},
               {"p99", or_null(d.p99)},
               {"min", or_null(d.min)},
               {"max", or_null(d.max)}};
  if (d.p90) json["p90"] = *d.p90;
  if (d.p999) json["p999"] = *d.p999;
  if (!d.reason.empty()) json["reason"] = d.reason;
  return json;
}

Distribution distribution_from(const FieldReader& in) {
  Distribution d;
  d.n = in.get<std::size_t>("n");
  d.mean = in.maybe<double>("mean");
  d.p50 = in.maybe<double>("p50");
  d.p99 = in.maybe<double>("p99");
  d.min = in.maybe<double>("min");
  d.max = in.maybe<double>("max");
  d.reason = in.reason();
  if (in.has("p90")) d.p90 = in.maybe<double>("p90");
  if (in.has("p999")) d.p999 = in.maybe<double>("p999");
  return d;
}

}  // namespace slacktier
