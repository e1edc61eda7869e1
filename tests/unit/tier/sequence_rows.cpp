#include "tier/sequence_rows.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "tests/test_device.hpp"
#include "tier/hash.hpp"

using namespace slacktier;
using namespace slacktier::testing;

TEST_CASE("a sequence's rows are those of its hash, whatever the batches", "[sequence_rows]") {
  const auto device = open_test_device();
  for (const char* table : {"engram_v41", "qwen38_ple"})
    for (const std::size_t tokens : {std::size_t{0}, std::size_t{1}, std::size_t{65'536}, std::size_t{70'001}}) {
      INFO(table << " " << tokens);
      const TableSpec spec = load_table_spec(table);
      std::mt19937_64 random(tokens);
      std::vector<std::uint32_t> sequence(tokens);
      for (auto& id : sequence) {
        id = static_cast<std::uint32_t>(random() % spec.vocabulary);
        if (spec.segment_end >= 0 && random() % 20 == 0) id = static_cast<std::uint32_t>(spec.segment_end);
      }
      std::vector<std::uint32_t> context(tokens * static_cast<std::size_t>(spec.max_ngram));
      gather_context(spec, sequence, 0, tokens, context.data());
      const std::size_t last = spec.layers.size() - 1;
      std::vector<std::uint32_t> expected(tokens * spec.rows_per_token());
      make_hash(spec)->rows(last, context.data(), tokens, expected.data());
      CHECK(sequence_rows(*device, spec, last, sequence) == expected);
    }
}
