#include "reports/probability.hpp"

#include "tests/catch.hpp"

using namespace slacktier;

// Expected values: scipy 1.14.
TEST_CASE("normal quantiles", "[probability]") {
  CHECK(normal_quantile(0.975) == Approx(1.959963984540054).epsilon(1e-13));
  CHECK(normal_quantile(0.0001) == Approx(-3.7190164854556804).epsilon(1e-12));
  CHECK(normal_quantile(1e-12) == Approx(-7.034483825301131).epsilon(1e-12));
  CHECK(normal_cdf(normal_quantile(0.3)) == Approx(0.3).epsilon(1e-13));
}

TEST_CASE("quantiles of Student's t", "[probability]") {
  CHECK(student_quantile(0.975, 9) == Approx(2.262157162798205).epsilon(1e-11));
  CHECK(student_quantile(0.975, 1) == Approx(12.706204736174694).epsilon(1e-11));
  CHECK(student_quantile(0.025, 4) == Approx(-2.7764451051977943).epsilon(1e-11));
  CHECK(student_quantile(0.999, 30) == Approx(3.3851848668293045).epsilon(1e-10));
  CHECK(student_quantile(0.5, 3) == 0);
}

TEST_CASE("binomial tails and the incomplete beta function", "[probability]") {
  CHECK(incomplete_beta(0.3, 2, 5) == Approx(0.5798250000000003).epsilon(1e-13));
  CHECK(incomplete_beta(0.5, 0.5, 0.5) == Approx(0.5).epsilon(1e-13));
  CHECK(incomplete_beta(0, 2, 3) == 0);
  CHECK(incomplete_beta(1, 2, 3) == 1);
  CHECK(binomial_cdf(1, 662, 0.01) == Approx(0.009913985645459311).epsilon(1e-11));
  CHECK(binomial_cdf(1, 661, 0.01) == Approx(0.010000967746517844).epsilon(1e-11));
  CHECK(binomial_cdf(5, 100, 0.03) == Approx(0.9191628710986265).epsilon(1e-11));
  CHECK(binomial_cdf(100, 1000, 0.1) == Approx(0.5265990812951657).epsilon(1e-11));
  CHECK(binomial_cdf(0, 5, 0.5) == Approx(0.03125).epsilon(1e-13));
  CHECK(binomial_cdf(5, 5, 0.5) == 1);
}
