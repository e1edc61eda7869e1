// The header of a safetensors file, read with distrust: every number is checked against the file before it is used.
//
// Layout (https://github.com/huggingface/safetensors, README): a little-endian u64 N, N bytes of JSON, the tensors' bytes.
// The JSON maps each tensor's name to {"dtype", "shape", "data_offsets": [begin, end)}, offsets counted behind the JSON, and
// "__metadata__" to texts. Names are unique, tensors lie one after another without gaps, N is at most 100 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace slacktier {

inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

struct Tensor {
  std::string dtype;  // as the format names it: "BF16", "F8_E4M3", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // bytes of the file
};

// Bytes of the JSON, from the file's first eight. Throws UsageError naming `where`.
std::uint64_t safetensors_json_bytes(std::span<const std::byte, 8> length, std::uint64_t file_bytes,
                                     const std::string& where);

// The tensors of a file of `file_bytes` bytes by name. Throws UsageError naming `where`, the tensor and what is wrong.
std::map<std::string, Tensor> parse_safetensors_json(std::span<const std::byte> json, std::uint64_t file_bytes,
                                                     const std::string& where);

}  // namespace slacktier
