// JSON of people and models, read without guessing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace slacktier {

// The object in `text`. Throws UsageError naming `where`: with the line of a syntax error, for a key that stands twice in
// one object (nlohmann would silently keep the last), and for anything but an object.
nlohmann::json parse_strict_object(std::string_view text, const std::string& where);

// A file of at most `limit` bytes. Throws UsageError naming it when it cannot be read or is larger.
std::string read_small_file(const std::string& path, std::uint64_t limit = std::uint64_t{64} << 20);

}  // namespace slacktier
