#include "tier/table/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"
#include "tier/table/strict_json.hpp"

namespace slacktier {

SpecFields::SpecFields(const std::string& text, std::string where)
    : object_(parse_strict_object(text, where)), where_(std::move(where)) {}

void SpecFields::fail(const std::string& key, const std::string& problem) const {
  throw UsageError(fmt::format("{}: field \"{}\": {}", where_, key, problem));
}

const nlohmann::json& SpecFields::get(const std::string& key) {
  asked_.insert(key);
  const auto at = object_.find(key);
  if (at == object_.end()) fail(key, "is missing");
  return *at;
}

std::uint64_t SpecFields::checked(const std::string& key, const nlohmann::json& value, std::uint64_t low,
                                  std::uint64_t high) const {
  if (!value.is_number_unsigned()) {
    fail(key, fmt::format("{} is not a whole number from {} to {}", value.dump(), low, high));
  }
  const auto number = value.get<std::uint64_t>();
  if (number < low || number > high) fail(key, fmt::format("{} is out of range: {} to {}", number, low, high));
  return number;
}

std::string SpecFields::text(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_string() || value.get<std::string>().empty()) fail(key, value.dump() + " is not a text");
  return value.get<std::string>();
}

std::uint64_t SpecFields::number(const std::string& key, std::uint64_t low, std::uint64_t high) {
  return checked(key, get(key), low, high);
}

double SpecFields::real(const std::string& key, double low, double high) {
  const nlohmann::json& value = get(key);
  if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high)) {
    fail(key, fmt::format("{} is not a number from {} to {}", value.dump(), low, high));
  }
  return value.get<double>();
}

bool SpecFields::flag(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_boolean()) fail(key, value.dump() + " is not true or false");
  return value.get<bool>();
}

std::vector<std::string> SpecFields::texts(const std::string& key) {
  const nlohmann::json& value = get(key);
  const nlohmann::json list = value.is_array() ? value : nlohmann::json::array({value});
  std::vector<std::string> result;
  for (const nlohmann::json& item : list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) fail(key, item.dump() + " is not a text");
    result.push_back(item.get<std::string>());
  }
  if (result.empty()) fail(key, "is an empty list");
  return result;
}

SpecFields SpecFields::object(const std::string& key) {
  const nlohmann::json& value = get(key);
  if (!value.is_object()) fail(key, value.dump() + " is not an object of fields");
  return {value, fmt::format("{}: {}", where_, key)};
}

std::vector<std::uint64_t> SpecFields::numbers(const std::string& key, std::uint64_t low, std::uint64_t high) {
  const nlohmann::json& value = get(key);
  if (!value.is_array() || value.empty()) fail(key, value.dump() + " is not a list of whole numbers");
  std::vector<std::uint64_t> result;
  for (const auto& item : value) result.push_back(checked(key, item, low, high));
  return result;
}

std::vector<std::uint64_t> SpecFields::numbers_or_one(const std::string& key, std::size_t count, std::uint64_t low,
                                                      std::uint64_t high) {
  if (!get(key).is_array()) return std::vector<std::uint64_t>(count, number(key, low, high));
  auto result = numbers(key, low, high);
  if (result.size() != count) fail(key, fmt::format("has {} entries, {} are needed", result.size(), count));
  return result;
}

std::vector<std::uint64_t> SpecFields::layers(const std::string& key, std::uint64_t low) {
  auto result = numbers(key, low, 100'000);
  for (std::size_t i = 1; i < result.size(); ++i) {
    if (result[i] <= result[i - 1]) fail(key, fmt::format("layer {} does not rise above {}", result[i], result[i - 1]));
  }
  return result;
}

void SpecFields::record(TableSpec& spec, std::uint64_t values, const std::string& values_key) {
  const std::string format = text("record");
  spec.row_values = static_cast<std::uint32_t>(values);
  if (format == "fp8_e4m3_block32") {
    if (values % 32 != 0) fail(values_key, fmt::format("{} values a row are no whole number of blocks of 32", values));
    spec.format = RecordFormat::fp8_e4m3_block32;
    spec.row_bytes = static_cast<std::uint32_t>(values + values / 32);
  } else if (format == "bf16") {
    spec.format = RecordFormat::bf16;
    spec.row_bytes = static_cast<std::uint32_t>(values * 2);
  } else {
    fail("record", fmt::format("unknown format \"{}\": use fp8_e4m3_block32 or bf16", format));
  }
}

void SpecFields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.count(key) == 0) fail(key, "is unknown; the fields are " + fmt::format("{}", fmt::join(asked_, ", ")));
  }
}

}  // namespace slacktier
