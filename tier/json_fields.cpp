#include "tier/json_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>

#include "platforms/error.hpp"
#include "tier/table/strict_parse.hpp"

namespace slacktier {
namespace {

std::string without_colon(const std::string& where) {
  return where.ends_with(": ") ? where.substr(0, where.size() - 2) : where;
}

}  // namespace

JsonValue parse_strict_json(std::string_view text, const std::string& where) { return parse_strict<JsonValue>(text, where); }

JsonFields::JsonFields(const JsonValue& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object())
    throw UsageError(fmt::format("{}: an object is needed, found {}", without_colon(where_), object.dump()));
}

void JsonFields::fail(const std::string& key, const std::string& problem) const {
  throw UsageError(fmt::format("{}: {}", place(key), problem));
}

const JsonValue* JsonFields::value(const std::string& key) {
  asked_.insert(key);
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

std::optional<std::uint64_t> JsonFields::number(const std::string& key, std::uint64_t low, std::uint64_t high) {
  const JsonValue* field = value(key);
  if (!field) return {};
  if (!field->is_number_unsigned() || field->get<std::uint64_t>() < low || field->get<std::uint64_t>() > high)
    fail(key, fmt::format("a whole number from {} to {} is needed, found {}", low, high, field->dump()));
  return field->get<std::uint64_t>();
}

std::optional<double> JsonFields::real(const std::string& key, double low, double high) {
  const JsonValue* field = value(key);
  if (!field) return {};
  if (!field->is_number() || field->get<double>() < low || field->get<double>() > high)
    fail(key, fmt::format("a number from {} to {} is needed, found {}", low, high, field->dump()));
  return field->get<double>();
}

std::optional<std::string> JsonFields::text(const std::string& key) {
  const JsonValue* field = value(key);
  if (!field) return {};
  if (!field->is_string()) fail(key, fmt::format("a string is needed, found {}", field->dump()));
  return field->get<std::string>();
}

std::optional<bool> JsonFields::flag(const std::string& key) {
  const JsonValue* field = value(key);
  if (!field) return {};
  if (!field->is_boolean()) fail(key, fmt::format("true or false is needed, found {}", field->dump()));
  return field->get<bool>();
}

std::optional<JsonFields> JsonFields::object(const std::string& key) {
  const JsonValue* field = value(key);
  if (!field) return {};
  return JsonFields(*field, place(key));
}

std::optional<std::string> JsonFields::choice(const std::string& key, const std::vector<std::string>& choices) {
  const auto chosen = text(key);
  if (chosen && std::find(choices.begin(), choices.end(), *chosen) == choices.end())
    fail(key, fmt::format("unknown '{}'; use one of {}", *chosen, fmt::join(choices, ", ")));
  return chosen;
}

std::vector<JsonValue> JsonFields::list(const std::string& key) {
  const JsonValue* field = value(key);
  if (!field) return {};
  if (!field->is_array()) fail(key, fmt::format("a list is needed, found {}", field->dump()));
  return {field->begin(), field->end()};
}

void JsonFields::finish() const {
  for (const auto& [key, field] : object_.items())
    if (!asked_.contains(key))
      throw UsageError(
          fmt::format("{}: unknown field '{}'; known are {}", without_colon(where_), key, fmt::join(asked_, ", ")));
}

}  // namespace slacktier
