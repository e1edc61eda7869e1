// A checkpoint on disk: one safetensors file, or a folder of them with or without an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tier/safetensors.hpp"

namespace slacktier {

// An open file whose header was read and checked. Reads are thread-safe.
class TensorFile {
 public:
  // Throws UsageError when it cannot be opened or is no whole safetensors file.
  TensorFile(std::string path, std::string name);
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;
  ~TensorFile();

  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }  // within the checkpoint
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t header_hash() const { return header_hash_; }  // XXH3-64 of length and JSON
  // Whole reads, or std::system_error naming file and offset, or DeviceError when the file has become shorter.
  void read(std::span<std::byte> out, std::uint64_t offset) const;

 private:
  std::string path_, name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0, header_hash_ = 0;
  std::map<std::string, Tensor> tensors_;
};

struct LocatedTensor {
  std::string name;
  const TensorFile* file = nullptr;
  const Tensor* tensor = nullptr;  // null: not in the checkpoint
  explicit operator bool() const { return tensor != nullptr; }
};

class CheckpointFiles {
 public:
  // `path` is a .safetensors file, or a folder with model.safetensors.index.json, or without it one with *.safetensors
  // files. With an index only files that are asked for are opened. Throws UsageError.
  explicit CheckpointFiles(const std::string& path);

  // Opens the tensor's file. Throws UsageError when the index names a file that lacks the tensor.
  LocatedTensor find(const std::string& name);
  const std::string& path() const { return path_; }
  // Some of the names there are, for a message about one that is not.
  std::string examples() const;

 private:
  const TensorFile& open(const std::string& file);

  std::string path_, folder_;
  std::map<std::string, std::string> file_of_;  // tensor name to file name
  std::map<std::string, std::unique_ptr<TensorFile>> files_;
};

}  // namespace slacktier
