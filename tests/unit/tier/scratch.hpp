// A folder of a test's own, and small tables to stage in it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tier/table.hpp"

namespace slacktier::test {

class Scratch {
 public:
  explicit Scratch(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
    std::string name = (parent / "slacktier-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Flips one bit of a file.
  void damage(const std::string& name, std::uint64_t at) const {
    std::fstream io(folder_ / name, std::ios::in | std::ios::out | std::ios::binary);
    io.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(io.get() ^ 1);
    io.seekp(static_cast<std::streamoff>(at));
    io.put(byte);
  }

 private:
  std::filesystem::path folder_;
};

// Two layers of 24 heads of about `rows` rows each.
inline TableSpec small_engram(const Scratch& scratch, std::uint64_t rows, const std::string& name = "small") {
  return load_table_spec(scratch.write(name + ".json", R"({"name": ")" + name + R"(", "hash": "engram",
    "record": "fp8_e4m3_block32", "engram_layer_ids": [1, 14], "engram_max_ngram_size": 4, "engram_n_heads": 8,
    "engram_head_dim": 256, "engram_vocab_size": )" + std::to_string(rows) +
                                                           R"(, "engram_pad_token_id": 2,
    "vocab_size": 1000, "compressed_vocab_size": 900, "seed": 0})"));
}

}  // namespace slacktier::test
