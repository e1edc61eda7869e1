// Generated sessions against real ones: decode hit rates of an LRU cache, by order and capacity.
#include "harness/generator.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"
#include "tests/unit/harness/reuse_curves.hpp"

using namespace slacktier;

namespace {

// Little-endian int32 per raw id.
std::vector<std::uint32_t> read_token_map(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint32_t> map;
  unsigned char bytes[4];
  while (file.read(reinterpret_cast<char*>(bytes), 4))
    map.push_back(bytes[0] | bytes[1] << 8 | bytes[2] << 16 | static_cast<std::uint32_t>(bytes[3]) << 24);
  return map;
}

void print(const std::string& kind, std::size_t sessions, const ReuseCurves& real, const ReuseCurves& made) {
  std::printf("%s, B = %zu, %llu steps: decode tokens %llu (generated %llu), prefill %llu (%llu)\n", kind.c_str(), sessions,
              static_cast<unsigned long long>(real.steps), static_cast<unsigned long long>(real.decode_tokens),
              static_cast<unsigned long long>(made.decode_tokens), static_cast<unsigned long long>(real.prefill_tokens),
              static_cast<unsigned long long>(made.prefill_tokens));
  std::printf("  order  ");
  for (const std::uint32_t rows : kCapacityRows) std::printf("%13u rows", rows);
  std::printf("       seen before  distinct in step\n");
  for (int n = 0; n < kOrders; ++n) {
    std::printf("  %d-gram ", n + 2);
    for (std::size_t c = 0; c < kCapacityRows.size(); ++c)
      std::printf("    %5.1f (%5.1f)", real.decode_hit[n][c], made.decode_hit[n][c]);
    std::printf("    %5.1f (%5.1f)    %5.1f (%5.1f)\n", real.seen_before[n], made.seen_before[n], real.distinct_in_step[n],
                made.distinct_in_step[n]);
  }
}

}  // namespace

TEST_CASE("generated sessions hit as real ones do", "[generator_sessions]") {
  const std::string map_file = real_session_file("token_map_v41_i32le.bin");
  if (map_file.empty()) return skip_test("token_map_v41_i32le.bin is not there; set SLACKTIER_SESSIONS to its directory");
  const std::vector<std::uint32_t> map = read_token_map(map_file);
  REQUIRE(map.size() == 129'280);
  for (const std::string& kind : {std::string("agent"), std::string("chat")}) {
    const std::string file = real_session_file(kind + ".tokens.jsonl.zst");
    if (file.empty()) return skip_test(kind + ".tokens.jsonl.zst is not there; set SLACKTIER_SESSIONS to its directory");
    for (const std::size_t sessions : {64u, 128u}) {
      const ReuseCurves real = reuse_curves(*open_sessions({file}), map, sessions, ~std::uint64_t{0});
      REQUIRE(real.steps > 1000);
      const ReuseCurves made = reuse_curves(*generated_sessions(kind, 1), map, sessions, real.steps);
      print(kind, sessions, real, made);
      CHECK(made.steps == real.steps);
      // The promise is for 64 sessions; 128 is a looser check that it does not hang on that number.
      const double most = sessions == 64 ? 2.0 : 3.0;
      for (int n = 0; n < kOrders; ++n) {
        for (std::size_t c = 0; c < kCapacityRows.size(); ++c) {
          INFO(kind << ", B = " << sessions << ", " << n + 2 << "-grams, " << kCapacityRows[c] << " rows: real "
                    << real.decode_hit[n][c] << "%, generated " << made.decode_hit[n][c] << "%");
          CHECK(std::abs(made.decode_hit[n][c] - real.decode_hit[n][c]) <= most);
        }
      }
    }
  }
}
