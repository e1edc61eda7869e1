#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "platforms/error.hpp"
#include "tier/sources/wrappers.hpp"

namespace slacktier {

WrapperSettings::WrapperSettings(const std::string& text) : text_(text), name_(text.substr(0, text.find(':'))) {
  if (name_.size() == text.size()) return;
  std::string_view rest = std::string_view(text).substr(name_.size() + 1);
  for (;;) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const auto equals = part.find('=');
    if (equals == 0 || equals == std::string_view::npos || equals + 1 == part.size())
      refuse(fmt::format("'{}' is no setting; settings are written key=value, separated by commas", part));
    Setting setting{std::string(part.substr(0, equals)), std::string(part.substr(equals + 1))};
    for (const auto& other : settings_)
      if (other.key == setting.key) refuse(fmt::format("{} is said twice", setting.key));
    settings_.push_back(std::move(setting));
    if (part.size() == rest.size()) return;
    rest.remove_prefix(part.size() + 1);
  }
}

void WrapperSettings::refuse(const std::string& why) const { throw UsageError(fmt::format("wrapper '{}': {}", text_, why)); }

std::optional<std::string> WrapperSettings::word(const char* key) {
  known_.emplace_back(key);
  for (auto& setting : settings_)
    if (setting.key == key) {
      setting.taken = true;
      return setting.value;
    }
  return std::nullopt;
}

std::optional<double> WrapperSettings::number(const char* key, double least, double most) {
  const auto text = word(key);
  if (!text) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !std::isfinite(value) || value < least || value > most)
    refuse(fmt::format("{}={}: a number from {} to {} is needed", key, *text, least, most));
  return value;
}

std::optional<std::uint64_t> WrapperSettings::count(const char* key, std::uint64_t least, std::uint64_t most) {
  const auto text = word(key);
  if (!text) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most)
    refuse(fmt::format("{}={}: a whole number from {} to {} is needed", key, *text, least, most));
  return value;
}

void WrapperSettings::finish() const {
  for (const auto& setting : settings_)
    if (!setting.taken) refuse(fmt::format("unknown setting '{}'; known are {}", setting.key, fmt::join(known_, ", ")));
}

}  // namespace slacktier
