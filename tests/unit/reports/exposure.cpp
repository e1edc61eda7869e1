#include "reports/exposure.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "reports/averages.hpp"
#include "reports/by_layer.hpp"
#include "reports/error.hpp"
#include "reports/exposure_fit.hpp"
#include "reports/paper.hpp"
#include "tests/catch.hpp"

using namespace slacktier;

namespace {

// Runs of two layers with made-up arrivals: W1 = 0.6, W14 = 9.35, kappa = 0.05, and noise.
std::vector<ExposureRun> made_up(std::size_t n, double noise_ms, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&](double lo, double hi) {
    return lo + (hi - lo) * static_cast<double>(random() % 100'000) / 100'000;
  };
  std::vector<ExposureRun> runs;
  for (std::size_t i = 0; i < n; ++i) {
    ExposureRun run;
    run.name = "run " + std::to_string(i);
    run.k = {1, 14};
    run.arrival_ms = {uniform(0.1, 3), uniform(1, 13)};
    const std::vector<double> windows{0.6, 9.35};
    run.slowdown_ms = exposed_ms(run.arrival_ms, windows) + 0.05 + uniform(-noise_ms, noise_ms);
    run.window_ms = {std::numeric_limits<double>::quiet_NaN(), 9.35};
    runs.push_back(run);
  }
  return runs;
}

}  // namespace

TEST_CASE("Eq. 1 of the paper's pairs, exactly", "[exposure]") {
  const PaperWindows paper = paper_windows();
  const std::vector<double> windows{paper.window_ms.at(1), paper.window_ms.at(14)};
  for (const Json& row : paper_values().at("table3_both_delayed_ms")) {
    const std::vector<double> delays{row.at("X1").get<double>(), row.at("X14").get<double>()};
    CHECK(exposed_ms(delays, windows) == Approx(row.at("eq1").get<double>()).margin(1e-9));
    CHECK(sum_of_excesses_ms(delays, windows) == Approx(row.at("sum").get<double>()).margin(1e-9));
  }
}

TEST_CASE("exposures follow the recurrence, and their sum is the largest excess", "[exposure]") {
  std::mt19937_64 random(11);
  for (int i = 0; i < 500; ++i) {
    const std::size_t n = 1 + random() % 6;
    std::vector<double> arrivals, windows;
    for (std::size_t k = 0; k < n; ++k) {
      arrivals.push_back(static_cast<double>(random() % 1000) / 100);
      windows.push_back(static_cast<double>(random() % 1000) / 100);
    }
    const std::vector<double> d = exposures(arrivals, windows);
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) {
      CHECK(d[k] == Approx(std::max(0.0, arrivals[k] - windows[k] - sum)).margin(1e-12));
      sum += d[k];
    }
    CHECK(exposed_ms(arrivals, windows) == Approx(sum).margin(1e-12));
    CHECK(sum <= sum_of_excesses_ms(arrivals, windows) + 1e-12);
    // A slower read never costs less.
    arrivals[random() % n] += 1;
    CHECK(exposed_ms(arrivals, windows) >= sum - 1e-12);
  }
  CHECK(exposures({}, {}).empty());
  CHECK_THROWS_AS(exposed_ms(std::vector<double>{1}, std::vector<double>{}), InputError);
  CHECK_THROWS_AS(exposures(std::vector<double>{std::nan("")}, std::vector<double>{1}), InputError);
}

TEST_CASE("the slowest rank counts at each layer, and steps before their mean", "[exposure]") {
  const std::vector<RankReads> ranks{{0.1, {2.0, 3.0}}, {0.2, {1.0, 5.0}}, {0.5, {0, 0}}};
  const std::vector<double> arrivals = slowest_arrivals(ranks);
  CHECK(arrivals == std::vector<double>{2.1, 5.2});
  CHECK_THROWS_AS(slowest_arrivals({}), InputError);
  // Half of the steps are 2 ms late, the mean is on time.
  const std::vector<std::vector<double>> steps{{0.0}, {4.0}};
  CHECK(mean(exposed_samples(steps, std::vector<double>{2.0})) == 1.0);
  CHECK(scaled_windows(std::vector<double>{1, 4}, 10, 20) == std::vector<double>{2, 8});
  CHECK_THROWS_AS(scaled_windows(std::vector<double>{1}, 0, 20), InputError);
}

TEST_CASE("kappa and a window are found again, and hold for other runs", "[exposure]") {
  const std::vector<int> fitted{1};
  const ExposureFit exact = fit_exposure(made_up(30, 0, 1), fitted);
  CHECK(exact.kappa_ms.estimate == Approx(0.05).margin(1e-3));
  REQUIRE(exact.windows.size() == 2);
  CHECK(exact.windows[0].w_ms.estimate == Approx(0.6).margin(1e-3));
  CHECK(exact.rmse_ms < 1e-3);
  CHECK_FALSE(exact.windows[1].fitted);

  const ExposureFit noisy = fit_exposure(made_up(40, 0.2, 2), fitted);
  CHECK(noisy.windows[0].w_ms.covers(0.6));
  CHECK(noisy.kappa_ms.covers(0.05));
  CHECK(*noisy.r2 > 0.9);
  const ExposureFit unseen = check_exposure(made_up(100, 0.2, 3), noisy);
  CHECK(unseen.rmse_ms < 0.15);
  CHECK(unseen.n == 100);

  Envelope envelope;
  set_exposure(envelope, noisy);
  envelope.provenance = provenance({"test", {}, 1, 0, Json::object()});
  const ExposureFit again = exposure_of(parse_envelope(to_text(envelope), "text", "exposure"));
  CHECK(again.windows[0].w_ms.lo == noisy.windows[0].w_ms.lo);
  CHECK(again.points.size() == noisy.points.size());
}

TEST_CASE("fits that cannot be made say why", "[exposure]") {
  const std::vector<int> first{1}, absent{7};
  CHECK_THROWS_WITH(fit_exposure(made_up(2, 0, 1), first), contains_text("3 are needed"));
  CHECK_THROWS_WITH(fit_exposure(made_up(9, 0, 1), absent), contains_text("no run reads that layer"));
  CHECK_THROWS_WITH(fit_exposure(made_up(9, 0, 1), {}), contains_text("layer 1 reads, but has no window"));
  CHECK_THROWS_AS(check_exposure({}, {}), InputError);
}

TEST_CASE("values by layer are read as written, or refused by part", "[exposure]") {
  CHECK(parse_by_layer("--windows", "14:9.35,1:0.27", "time in ms") == std::map<int, double>{{1, 0.27}, {14, 9.35}});
  for (const char* bad : {"", "1", "1:", ":3", "1:x", "1:-2", "a:3", "1:nan", "1:2,1:3", "1:2 "}) {
    INFO(bad);
    CHECK_THROWS_AS(parse_by_layer("--windows", bad, "time in ms"), InputError);
  }
}

TEST_CASE("mean and median", "[exposure]") {
  CHECK(mean(std::vector<double>{1, 2, 6}) == 3);
  CHECK(median(std::vector<double>{5, 1, 3}) == 3);
  CHECK(median(std::vector<double>{4, 1, 3, 2}) == 2.5);
  CHECK_THROWS_AS(mean({}), InputError);
  CHECK_THROWS_AS(median({}), InputError);
}
