// Writes safetensors files byte by byte, well-formed ones and others.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/tier/scratch.hpp"

namespace slacktier::test {

struct TensorBytes {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

inline std::string with_length(const std::string& json, const std::string& data) {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return file + json + data;
}

// In the order given; `padding` spaces behind the JSON shift all data.
inline std::string safetensors_bytes(const std::vector<TensorBytes>& tensors, std::size_t padding = 0) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::string data;
  for (const TensorBytes& tensor : tensors) {
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}}};
    data += tensor.bytes;
  }
  return with_length(header.dump() + std::string(padding, ' '), data);
}

// Bytes that differ from place to place.
inline std::string pattern(std::size_t bytes, std::uint64_t seed) {
  std::string text(bytes, '\0');
  std::uint64_t x = seed * 2 + 1;
  for (char& c : text) c = static_cast<char>((x = x * 6364136223846793005ULL + 1442695040888963407ULL) >> 56);
  return text;
}

}  // namespace slacktier::test
