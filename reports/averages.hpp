// Mean and median, once.
#pragma once

#include <span>

namespace slacktier {

// Throw InputError for no values.
double mean(std::span<const double> values);
double median(std::span<const double> values);  // of an even number the middle of the two

}  // namespace slacktier
