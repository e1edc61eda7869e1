// Statistics of samples as result files hold them. The unit stands in the field's name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "reports/field_reader.hpp"
#include "reports/json.hpp"
#include "reports/samples.hpp"

namespace slacktier {

// Without samples n is 0 and the rest empty; a percentile is empty when n does not support it.
struct Distribution {
  std::size_t n = 0;
  std::optional<double> mean, p50, p99, min, max;
  std::string reason;               // why a value is missing
  std::optional<double> p90, p999;  // only of read times
};
Distribution distribution(const Summary& summary);
Distribution distribution(std::span<const double> samples);
// With p90 and p99.9.
Distribution tail_distribution(std::span<const double> samples);

Json to_json(const Distribution& distribution);
// Throws InputError naming the field.
Distribution distribution_from(const FieldReader& in);

}  // namespace slacktier
