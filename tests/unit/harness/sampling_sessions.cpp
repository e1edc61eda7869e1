// Sampled miss curves of the real sessions against the exact ones.
#include <cstdio>

#include "harness/misses.hpp"
#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"

using namespace slacktier;

// Half a point, at 1% of the rows, for every capacity and rank: the chats, whose novelty is the harder part, within seconds.
TEST_CASE("a hundredth of the rows gives hit rates within half a point", "[sampling_sessions]") {
  MissesOptions options;
  const std::string sessions = real_session_file("chat.tokens.jsonl.zst");
  options.token_map = real_session_file("token_map_v41_i32le.bin");
  if (sessions.empty() || options.token_map.empty())
    return skip_test(
        "chat.tokens.jsonl.zst and token_map_v41_i32le.bin are not there; set SLACKTIER_SESSIONS to their directory");
  options.traces = {sessions};
  options.layers = {14};
  const MissesRun exact = measure_misses(options);
  options.sample = 0.01;
  const MissesRun sampled = measure_misses(options);
  double largest = 0, sum = 0;
  int points = 0;
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const auto &a = exact.results[0].layers[0].ranks[rank].curve, &b = sampled.results[0].layers[0].ranks[rank].curve;
    for (std::size_t c = 1; c < a.size(); ++c) {
      CAPTURE(rank, a[c].rows, *a[c].decode_hit, *b[c].decode_hit);
      const double off = std::abs(*a[c].decode_hit - *b[c].decode_hit);
      CHECK(off < 0.005);
      largest = std::max(largest, off);
      sum += off;
      ++points;
    }
  }
  std::printf("sampled at 1%%: off by %.2f points on average, %.2f at most; stated standard error %.2f\n",
              100 * sum / points, 100 * largest, 100 * *sampled.results[0].sampled->error);
  CHECK(largest < 4 * *sampled.results[0].sampled->error);
}
