#include "tier/checkpoint/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "platforms/error.hpp"
#include "tier/table/strict_json.hpp"

namespace slacktier {

namespace fs = std::filesystem;

TensorFile::TensorFile(std::string path, std::string name) : path_(std::move(path)), name_(std::move(name)) {
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    throw UsageError(fmt::format("{}: cannot be opened: {}", path_, std::generic_category().message(errno)));
  try {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) throw_errno("stat " + path_);
    if (!S_ISREG(status.st_mode)) throw UsageError(path_ + ": is no regular file");
    bytes_ = static_cast<std::uint64_t>(status.st_size);
    std::array<std::byte, 8> length{};
    if (bytes_ < length.size()) throw UsageError(fmt::format("{}: is no safetensors file: it has {} bytes", path_, bytes_));
    read(length, 0);
    std::vector<std::byte> json(safetensors_json_bytes(length, bytes_, path_));
    read(json, length.size());
    tensors_ = parse_safetensors_json(json, bytes_, path_);
    header_hash_ = XXH3_64bits_withSeed(json.data(), json.size(), json.size());
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

TensorFile::~TensorFile() { ::close(descriptor_); }

void TensorFile::read(std::span<std::byte> out, std::uint64_t offset) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno(fmt::format("read {} at byte {}", path_, offset));
    if (got == 0) throw DeviceError(fmt::format("{}: ends at byte {}, it had {} when it was opened", path_, offset, bytes_));
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

CheckpointFiles::CheckpointFiles(const std::string& path) : path_(path) {
  constexpr const char* index_name = "model.safetensors.index.json";
  if (!fs::is_directory(path)) {
    folder_ = fs::path(path).parent_path().string();
    const std::string name = fs::path(path).filename().string();
    for (const auto& [tensor, unused] : open(name).tensors()) file_of_[tensor] = name;
    return;
  }
  folder_ = path;
  const std::string index = (fs::path(path) / index_name).string();
  if (fs::exists(index)) {
    const nlohmann::json json = parse_strict_object(read_small_file(index, safetensors_header_limit), index);
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object())
      throw UsageError(index + ": field \"weight_map\" is no object of file names");
    for (const auto& [tensor, file] : map->items()) {
      if (!file.is_string()) throw UsageError(fmt::format("{}: weight_map: \"{}\" is no file name", index, tensor));
      const auto& name = file.get_ref<const std::string&>();
      // An index names files beside it; anything else would read what nobody named.
      if (name.empty() || name.find('/') != std::string::npos || name.find('\0') != std::string::npos || name[0] == '.')
        throw UsageError(
            fmt::format("{}: weight_map: \"{}\" lies in \"{}\", which is no file of its folder", index, tensor, name));
      file_of_[tensor] = name;
    }
    return;
  }
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) throw UsageError(fmt::format("{}: holds neither {} nor a *.safetensors file", path, index_name));
  for (const std::string& name : names) {
    for (const auto& [tensor, unused] : open(name).tensors()) {
      const auto [at, added] = file_of_.emplace(tensor, name);
      if (!added)
        throw UsageError(fmt::format("{}: tensor \"{}\" lies in {} and in {}; an index would say which counts", path, tensor,
                                     at->second, name));
    }
  }
}

const TensorFile& CheckpointFiles::open(const std::string& file) {
  auto& slot = files_[file];
  if (!slot) slot = std::make_unique<TensorFile>((fs::path(folder_) / file).string(), file);
  return *slot;
}

LocatedTensor CheckpointFiles::find(const std::string& name) {
  const auto at = file_of_.find(name);
  if (at == file_of_.end()) return {name, nullptr, nullptr};
  const TensorFile& file = open(at->second);
  const auto tensor = file.tensors().find(name);
  if (tensor == file.tensors().end())
    throw UsageError(fmt::format("{}: lacks the tensor \"{}\" that the index says it holds", file.path(), name));
  return {name, &file, &tensor->second};
}

std::string CheckpointFiles::examples() const {
  // Embeddings first: the table that is looked for is one.
  std::vector<std::string> names;
  for (const bool embedding : {true, false}) {
    for (const auto& [name, file] : file_of_) {
      if ((name.find("embed") != std::string::npos) == embedding && names.size() < 5) names.push_back(name);
    }
  }
  return names.empty() ? "it holds no tensor"
                       : fmt::format("its {} tensors are {}{}", file_of_.size(), fmt::join(names, ", "),
                                     file_of_.size() > names.size() ? ", ..." : "");
}

}  // namespace slacktier
