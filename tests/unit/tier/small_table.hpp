// A small table with a real hash, staged in a folder that removes itself: what live tests run on.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/tier/scratch.hpp"
#include "tier/image.hpp"
#include "tier/table.hpp"

namespace slacktier::testing {

// Beside the test's working directory: temporary folders may lie on tmpfs, which has no direct I/O.
class ScratchFolder : public test::Scratch {
 public:
  ScratchFolder() : Scratch(std::filesystem::current_path()) {}
};

// Layers 1 and 3, orders 2 and 3 with two heads each, about 2,000 rows a head.
inline TableSpec small_table(const ScratchFolder& folder) {
  const std::string path = folder.file("small.json");
  std::ofstream(path) << R"({"name": "small", "hash": "engram", "record": "fp8_e4m3_block32", "seed": 3, "vocab_size": 600,
    "engram_layer_ids": [1, 3], "engram_max_ngram_size": 3, "engram_n_heads": 2, "engram_head_dim": 256,
    "engram_vocab_size": 2000, "compressed_vocab_size": 500, "engram_pad_token_id": 0})";
  return load_table_spec(path);
}

inline std::vector<std::string> stage_small(const ScratchFolder& folder, const TableSpec& spec, std::uint32_t disks,
                                            std::uint32_t ranks = 1, std::uint32_t rank = 0, std::uint64_t max_bytes = 0) {
  StageOptions options;
  for (std::uint32_t d = 0; d < disks; ++d)
    options.disks.push_back(
        folder.file("image-" + std::to_string(disks) + "-" + std::to_string(ranks) + "-" + std::to_string(d)));
  options.ranks = ranks;
  options.only_ranks = {rank};
  options.max_bytes = max_bytes;
  stage_image(spec, options);
  return options.disks;
}

}  // namespace slacktier::testing
