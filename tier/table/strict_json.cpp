#include "tier/table/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {

nlohmann::json parse_strict_object(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> open;
  const auto reject_twins = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
    if (event == nlohmann::json::parse_event_t::object_start) open.emplace_back();
    if (event == nlohmann::json::parse_event_t::object_end) open.pop_back();
    if (event == nlohmann::json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second) {
      throw UsageError(fmt::format("{}: field \"{}\" stands twice", where, parsed.get<std::string>()));
    }
    return true;
  };
  // nlohmann takes a NUL for the end of its input and would ignore what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw UsageError(fmt::format("{}: not JSON: a NUL at byte {}", where, nul));
  try {
    nlohmann::json object = nlohmann::json::parse(text.begin(), text.end(), reject_twins);
    if (!object.is_object()) throw UsageError(where + ": is not a JSON object of fields");
    return object;
  } catch (const nlohmann::json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(error.byte, text.size()));
    throw UsageError(fmt::format("{}:{}: not JSON: {}", where, 1 + std::count(text.begin(), end, '\n'), error.what()));
  }
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
