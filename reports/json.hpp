// JSON as this project reads and writes it: strict, ordered, without NaN.
#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace slacktier {

// Objects keep the order in which their keys were added, so that equal values give equal bytes and files read well.
using Json = nlohmann::ordered_json;

// Parses RFC 8259 JSON and nothing else: no NaN or Infinity, comments, trailing commas or second values; a key that appears
// twice in an object and nesting below 64 levels are refused too. `name` stands for the text in messages. Throws InputError
// that names `name`, line and column (or the place of the doubled key).
Json parse_json(std::string_view text, const std::string& name);

// The whole of a text file. Throws InputError when it cannot be opened or read.
std::string read_text_file(const std::filesystem::path& path);

// Writes the file as a whole or not at all: a temporary file beside it is written, synced and renamed over it.
// Throws std::system_error naming the path.
void write_text_file(const std::filesystem::path& path, std::string_view text);

// Line (from 1) of the value at an RFC 6901 pointer in a text that parse_json accepted. A pointer that leads nowhere gives
// the line of the deepest value on its way.
std::size_t line_of(std::string_view text, const std::string& pointer);

// Replaces each NaN and infinity below `value` by null. In an object it adds to the text of the sibling "reason" which field
// was not finite; returns the pointers of all that were replaced.
std::vector<std::string> replace_not_finite(Json& value);

}  // namespace slacktier
