// Reading the small text files in which Linux tells about itself.
//
// Functions that read the system take a `root` that is put before /proc and /sys, so that tests bring their own; it is empty
// in programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slacktier {

// The whole file; nothing when it cannot be read.
std::optional<std::string> read_text(const std::string& path);

// Its first line, without blanks at the ends.
std::optional<std::string> read_line(const std::string& path);

// What follows `key` and a colon (blanks around it allowed) on the first line that begins so: "MemTotal", "model name".
std::optional<std::string> text_field(std::string_view text, std::string_view key);

// A decimal number at the beginning; nothing when there is none or it does not fit.
std::optional<std::uint64_t> leading_number(std::string_view text);

// How many numbers a list like "0-3,8,10-11" names; nothing when it is no such list.
std::optional<std::uint64_t> list_size(std::string_view list);

// The numbers themselves; nothing when it is no such list or names more than 65,536.
std::optional<std::vector<std::uint64_t>> list_numbers(std::string_view list);

std::string_view trimmed(std::string_view text);

}  // namespace slacktier
