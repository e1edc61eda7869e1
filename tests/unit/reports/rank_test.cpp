#include <cmath>

#include "reports/error.hpp"
#include "reports/samples.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

// Expected values: scipy.stats.mannwhitneyu (1.10 to 1.14 agree).
TEST_CASE("Mann-Whitney without ties is exact", "[rank_test]") {
  const std::vector<double> a{29.41, 29.52, 29.38, 29.60, 29.45, 29.49, 29.55, 29.40, 29.47, 29.50};
  const std::vector<double> b{29.61, 29.72, 29.48, 29.80, 29.65, 29.39, 29.75, 29.70, 29.67, 29.54};
  const MannWhitney test = mann_whitney(a, b);
  CHECK(test.exact);
  CHECK(test.u == 16);
  CHECK(test.p == Approx(0.00893069778518695).epsilon(1e-12));
  CHECK(mann_whitney(b, a).u == 84);
  CHECK(mann_whitney(b, a).p == Approx(test.p).epsilon(1e-12));
  CHECK(mann_whitney(std::vector<double>{1, 2, 4}, std::vector<double>{3, 5, 6, 7.5}).p ==
        Approx(0.11428571428571428).epsilon(1e-12));
}

TEST_CASE("Mann-Whitney with ties is corrected for them", "[rank_test]") {
  const std::vector<double> a{1, 2, 2, 3, 3, 3, 4, 5, 5, 6, 7, 7}, b{2, 3, 3, 4, 5, 6, 6, 7, 8, 8, 9};
  const MannWhitney test = mann_whitney(a, b);
  CHECK_FALSE(test.exact);
  CHECK(test.u == 40.5);
  CHECK(test.p == Approx(0.12035290230089202).epsilon(1e-12));
}

TEST_CASE("Mann-Whitney of many values is the normal approximation", "[rank_test]") {
  std::vector<double> a, b;
  for (int i = 0; i < 101; ++i) a.push_back(i * 7 % 101 + 0.25 * i);
  for (int i = 0; i < 103; ++i) b.push_back(i * 11 % 103 + 0.3 * i + 0.125);
  const MannWhitney test = mann_whitney(a, b);
  CHECK_FALSE(test.exact);
  CHECK(test.u == 4845);
  CHECK(test.p == Approx(0.39840664085678146).epsilon(1e-12));
}

TEST_CASE("Mann-Whitney at its edges", "[rank_test]") {
  const std::vector<double> same(5, 1.0);
  CHECK(mann_whitney(same, same).p == 1);
  CHECK_THROWS_AS(mann_whitney(same, {}), InputError);
  CHECK_THROWS_AS(mann_whitney(same, std::vector<double>{std::nan("")}), InputError);
}
