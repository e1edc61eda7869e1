// The published map of DeepSeek-V4.1 from the DeepSeek-V3 tokenizer.
#include "harness/vocab.hpp"
#include "reports/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/real_sessions.hpp"

using namespace slacktier;

TEST_CASE("the DeepSeek-V3 tokenizer gives the published classes and map", "[vocab_real]") {
  const std::string file = real_session_file("deepseek_v3_tokenizer.json.zst");
  if (file.empty()) return skip_test("deepseek_v3_tokenizer.json.zst is not there; set SLACKTIER_SESSIONS to its directory");
  const Vocabulary v3 = compress_vocabulary({file, 0, 0});
  CHECK(v3.map.size() == 128'815);
  CHECK(v3.classes == 98'627);
  const Vocabulary v41 = compress_vocabulary({file, 128'000, 1280});
  CHECK(v41.classes == 99'092);
  std::string bytes;
  for (const std::int32_t id : v41.map)
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(static_cast<std::uint32_t>(id) >> shift & 0xFF);
  CHECK(sha256_hex(bytes) == "c60a86322ec17b4142bfef3c57a8d81fb428550cdf487f88a4320cb59fe46481");
}
