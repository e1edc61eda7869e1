// Generated sessions against stored hit rates of real ones, for machines that have no real sessions.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "harness/generator.hpp"
#include "tests/catch.hpp"
#include "tests/unit/harness/reuse_curves.hpp"

using namespace slacktier;

namespace {

// Decode hit rates in percent of an LRU cache under 64 interleaved sessions, from cold, over as many steps as the files of
// real sessions last, in the order of kCapacityRows (the numbers that generator_sessions prints).
struct Target {
  const char* kind;
  std::uint64_t steps;
  double decode_hit[kOrders][kCapacityRows.size()];
};

constexpr Target kTargets[] = {
    {"agent", 20'872, {{36.8, 67.1, 83.2, 92.3, 93.5}, {14.9, 36.2, 52.6, 68.5, 76.3}, {8.5, 23.0, 35.6, 50.0, 58.9}}},
    {"chat", 7'697, {{38.5, 61.7, 71.0, 75.0, 75.1}, {14.3, 31.5, 41.5, 47.4, 48.5}, {6.9, 18.1, 26.1, 30.6, 31.6}}},
};

}  // namespace

TEST_CASE("generated sessions meet the stored hit rates of real ones", "[generator_curves]") {
  for (const Target& target : kTargets) {
    const ReuseCurves made = reuse_curves(*generated_sessions(target.kind, 1), {}, 64, target.steps);
    CHECK(made.steps == target.steps);
    for (int n = 0; n < kOrders; ++n) {
      for (std::size_t c = 0; c < kCapacityRows.size(); ++c) {
        std::printf("%s %d-grams, %u rows: real %.1f%%, generated %.1f%%\n", target.kind, n + 2, kCapacityRows[c],
                    target.decode_hit[n][c], made.decode_hit[n][c]);
        INFO(target.kind << ", " << n + 2 << "-grams, " << kCapacityRows[c] << " rows: real " << target.decode_hit[n][c]
                         << "%, generated " << made.decode_hit[n][c] << "%");
        CHECK(std::abs(made.decode_hit[n][c] - target.decode_hit[n][c]) <= 2);
      }
    }
  }
}
