// Distribution functions that the statistics need.
#pragma once

#include <cstdint>

namespace slacktier {

double normal_cdf(double z);
// The z with normal_cdf(z) = p, for 0 < p < 1.
double normal_quantile(double p);

// I_x(a, b), the regularised incomplete beta function, for 0 <= x <= 1 and a, b > 0: continued fraction of DLMF 8.17.22.
double incomplete_beta(double x, double a, double b);

// The t with P(T <= t) = p for Student's t with `freedom` > 0 degrees of freedom, 0 < p < 1.
double student_quantile(double p, double freedom);

// P(X <= k) for X binomial with n trials of probability p.
double binomial_cdf(std::uint64_t k, std::uint64_t n, double p);

}  // namespace slacktier
