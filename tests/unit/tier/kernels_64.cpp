// The GPUs' kernels at 64 lanes.
#define SLACKTIER_EMULATED_LANES 64
#include "tests/unit/tier/emulated_kernels.hpp"

#include <cstdint>

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("kernels of 64 lanes deliver what the definition says", "[kernels_64]") {
  if (!emulation_runs()) return skip_test("this sanitizer does not follow fibers");
  check_kernels(*open_emulated(), true);
}
