#include "platforms/proc_text.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <iterator>

namespace slacktier {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) return std::nullopt;
  return text;
}

std::optional<std::string> read_line(const std::string& path) {
  const std::optional<std::string> text = read_text(path);
  if (!text) return std::nullopt;
  return std::string(trimmed(std::string_view(*text).substr(0, text->find('\n'))));
}

std::optional<std::string> text_field(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.substr(0, key.size()) != key) continue;
    const std::string_view rest = trimmed(line.substr(key.size()));
    if (!rest.empty() && rest.front() == ':') return std::string(trimmed(rest.substr(1)));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> list_size(std::string_view list) {
  list = trimmed(list);
  if (list.empty()) return std::nullopt;
  std::uint64_t count = 0;
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const auto dash = item.find('-');
    const auto first = leading_number(item);
    const auto last = dash == std::string_view::npos ? first : leading_number(item.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    count += *last - *first + 1;
  }
  return count;
}

std::optional<std::vector<std::uint64_t>> list_numbers(std::string_view list) {
  const auto size = list_size(list);
  if (!size || *size > 65'536) return std::nullopt;
  std::vector<std::uint64_t> numbers;
  for (list = trimmed(list); !list.empty();) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    const auto dash = item.find('-');
    const std::uint64_t first = *leading_number(item);
    const std::uint64_t last = dash == std::string_view::npos ? first : *leading_number(item.substr(dash + 1));
    for (std::uint64_t n = first; n <= last; ++n) numbers.push_back(n);
  }
  return numbers;
}

}  // namespace slacktier
