// The tier's kernels on a GPU.
#include <cstdint>

#include "tests/gpu/fixture.hpp"
#include "tests/kernel_checks.hpp"

using namespace slacktier;
using namespace slacktier::test;
using namespace slacktier::testing;

TEST_CASE("kernels deliver what the definition says", "[tier_kernels]") {
  const auto device = open_gpu();
  if (!device) return;
  device->load_module(tier_modules());
  check_kernels(*device, true);
}

TEST_CASE("millions of random rows are right bit for bit", "[tier_kernels]") {
  const auto device = open_gpu();
  if (!device) return;
  device->load_module(tier_modules());
  for (const OutputFormat output : {OutputFormat::bf16, OutputFormat::fp32})
    for (const std::uint64_t seed : {71u, 72u, 73u, 74u}) {
      check_gather(*device, {RecordFormat::fp8_e4m3_block32, 256, 500'000, 400'000, 100'000, 5'000, seed, output});
      check_gather(*device, {RecordFormat::bf16, 160, 500'000, 400'000, 100'000, 5'000, seed, output});
    }
}

TEST_CASE("a million tokens hash as on the host", "[tier_kernels]") {
  const auto device = open_gpu();
  if (!device) return;
  device->load_module(tier_modules());
  check_hash(*device, "engram_v41", 1'000'000, 73);
  check_hash(*device, "qwen38_ple", 1'000'000, 74);
  check_hash(*device, "longcat_flash_lite", 1'000'000, 75);
  check_hash(*device, "gemma4_e4b_ple", 1'000'000, 76);
}
