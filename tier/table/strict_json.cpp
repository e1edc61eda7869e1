#include "tier/table/strict_json.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "platforms/error.hpp"
#include "tier/table/strict_parse.hpp"

namespace slacktier {

nlohmann::json parse_strict_object(std::string_view text, const std::string& where) {
  nlohmann::json object = parse_strict<nlohmann::json>(text, where);
  if (!object.is_object()) throw UsageError(where + ": is not a JSON object of fields");
  return object;
}

std::string read_small_file(const std::string& path, std::uint64_t limit) {
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path)) throw UsageError(path + ": cannot be opened");
  std::string text;
  std::vector<char> block(1 << 16);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > limit) throw UsageError(fmt::format("{}: is larger than {} bytes", path, limit));
  }
  if (file.bad()) throw UsageError(path + ": cannot be read");
  return text;
}

}  // namespace slacktier
