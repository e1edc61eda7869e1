// The one strict parser of JSON texts, for either of nlohmann's kinds of objects: sorted or in the text's order.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "platforms/error.hpp"

namespace slacktier {

// Throws UsageError naming `where`: with the line of a syntax error, for a key that stands twice in one object (nlohmann
// would silently keep the last), for a NUL (nlohmann would take it for the end) and for nesting beyond 64 levels.
template <class Json>
Json parse_strict(std::string_view text, const std::string& where) {
  using Event = typename Json::parse_event_t;
  std::vector<std::set<std::string>> open;
  const auto check = [&](int depth, Event event, Json& parsed) {
    if (depth > 64) throw UsageError(fmt::format("{}: values are nested more than 64 deep", where));
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.template get<std::string>()).second)
      throw UsageError(fmt::format("{}: field \"{}\" stands twice", where, parsed.template get<std::string>()));
    return true;
  };
  if (const auto nul = text.find('\0'); nul != std::string_view::npos)
    throw UsageError(fmt::format("{}: not JSON: a NUL at byte {}", where, nul));
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const typename Json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(error.byte, text.size()));
    throw UsageError(fmt::format("{}:{}: not JSON: {}", where, 1 + std::count(text.begin(), end, '\n'), error.what()));
  }
}

}  // namespace slacktier
