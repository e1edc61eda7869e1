#include "platforms/clock.hpp"

#include "tests/catch.hpp"

using namespace slacktier;

TEST_CASE("The clock does not run backwards", "[clock]") {
  const Clock& clock = monotonic_clock();
  Nanos last = clock.now();
  CHECK(last > 0);
  for (int i = 0; i < 100'000; ++i) {
    const Nanos now = clock.now();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("sleep_until never returns early", "[clock]") {
  const Clock& clock = monotonic_clock();
  for (const Nanos delay : {1, 1'000, 50'000, 1'000'000, 20'000'000}) {
    const Nanos deadline = clock.now() + delay;
    clock.sleep_until(deadline);
    CHECK(clock.now() >= deadline);
  }
}

TEST_CASE("sleep_until returns at once when the deadline has passed", "[clock]") {
  // Each would hang for years if a past deadline were taken for a duration or wrapped.
  const Clock& clock = monotonic_clock();
  clock.sleep_until(clock.now() - 1);
  clock.sleep_until(1);
  clock.sleep_until(0);
  clock.sleep_until(-5);
}
