#include "reports/by_layer.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>

#include "reports/error.hpp"

namespace slacktier {

std::map<int, double> parse_by_layer(const std::string& option, const std::string& text, const std::string& what) {
  std::map<int, double> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t colon = part.find(':');
    const char* const end = part.data() + part.size();
    int layer = -1;
    double value = -1;
    bool read = colon != std::string::npos && colon > 0;
    if (read) {
      const auto number = std::from_chars(part.data(), part.data() + colon, layer);
      const auto amount = std::from_chars(part.data() + colon + 1, end, value);
      read = number.ec == std::errc() && number.ptr == part.data() + colon && amount.ec == std::errc() && amount.ptr == end;
    }
    if (!read || layer < 0 || !std::isfinite(value) || value < 0)
      throw InputError(fmt::format("{}: '{}' is no LAYER:VALUE with a {}, such as 1:0.27,14:9.35", option, part, what));
    if (!values.try_emplace(layer, value).second)
      throw InputError(fmt::format("{} {}: layer {} stands there twice", option, text, layer));
  }
  if (values.empty()) throw InputError(fmt::format("{}: write LAYER:VALUE,… with a {} each", option, what));
  return values;
}

}  // namespace slacktier
