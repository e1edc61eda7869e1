#include "reports/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <stdexcept>

#include "reports/embedded/embedded.hpp"
#include "reports/error.hpp"

namespace slacktier {
namespace {

using Pointer = Json::json_pointer;

constexpr std::size_t max_matched_string = 4096;  // std::regex recurses once a character

const char* type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::boolean:
      return "boolean";
    case Json::value_t::string:
      return "string";
    case Json::value_t::object:
      return "object";
    case Json::value_t::array:
      return "array";
    case Json::value_t::number_float: {
      const double number = value.get<double>();
      return std::trunc(number) == number ? "integer" : "number";
    }
    default:
      return "integer";
  }
}

bool has_type(const Json& value, const std::string& type) {
  const std::string own = type_name(value);
  return own == type || (type == "number" && own == "integer");
}

// The value as an error message quotes it.
std::string shown(const Json& value) {
  if (value.is_object() || value.is_array()) return std::string("an ") + type_name(value);
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "…";
  return text;
}

const std::regex& compiled(const std::string& pattern) {
  thread_local std::map<std::string, std::regex> cache;
  const auto found = cache.find(pattern);
  if (found != cache.end()) return found->second;
  return cache.emplace(pattern, std::regex(pattern, std::regex::ECMAScript)).first->second;
}

bool matches(const std::string& text, const std::string& pattern) {
  return text.size() <= max_matched_string && std::regex_search(text, compiled(pattern));
}

class Validator {
 public:
  Validator(const Json& root, SchemaOptions options) : root_(root), options_(options) {}

  void check(const Json& schema, const Json& value, const Pointer& at) {
    if (schema.is_boolean()) {
      if (!schema.get<bool>()) report(at, "must not be there");
      return;
    }
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "$ref") {
        check(resolve(rule.get<std::string>()), value, at);
      } else if (keyword == "type") {
        check_type(rule, value, at);
      } else if (keyword == "enum") {
        check_enum(rule, value, at);
      } else if (keyword == "oneOf") {
        check_one_of(rule, value, at);
      } else if (keyword == "pattern") {
        if (value.is_string() && !matches(value.get<std::string>(), rule.get<std::string>()))
          report(at, fmt::format("must match {}, is {}", rule.get<std::string>(), shown(value)));
      } else if (keyword == "minimum" || keyword == "maximum") {
        const bool least = keyword == "minimum";
        if (value.is_number() && (least ? value < rule : value > rule))
          report(at, fmt::format("must be at {} {}, is {}", least ? "least" : "most", rule.dump(), shown(value)));
      } else if (keyword == "required") {
        if (value.is_object())
          for (const auto& name : rule)
            if (!value.contains(name)) report(at / name.get<std::string>(), "is missing");
      } else if (keyword == "items") {
        if (value.is_array())
          for (std::size_t i = 0; i < value.size(); ++i) check(rule, value[i], at / i);
      } else if (keyword == "minItems") {
        if (value.is_array() && value.size() < rule.get<std::size_t>())
          report(at, fmt::format("must have at least {} items, has {}", rule.get<std::size_t>(), value.size()));
      } else if (keyword == "properties" || keyword == "patternProperties" || keyword == "additionalProperties") {
        // Handled together below: what is additional depends on the other two.
      } else if (keyword != "$schema" && keyword != "$id" && keyword != "$defs" && keyword != "title" &&
                 keyword != "description") {
        throw std::logic_error("schema keyword " + keyword + " is not supported");
      }
    }
    if (value.is_object()) check_properties(schema, value, at);
  }

  std::vector<SchemaProblem> problems;

 private:
  void report(const Pointer& at, std::string message) { problems.push_back({at.to_string(), std::move(message)}); }

  const Json& resolve(const std::string& reference) const {
    const std::string start = "#/$defs/";
    if (reference.rfind(start, 0) != 0 || !root_.contains("$defs") ||
        !root_["$defs"].contains(reference.substr(start.size())))
      throw std::logic_error("schema reference " + reference + " leads nowhere");
    return root_["$defs"][reference.substr(start.size())];
  }

  void check_type(const Json& rule, const Json& value, const Pointer& at) {
    const std::vector<std::string> types =
        rule.is_array() ? rule.get<std::vector<std::string>>() : std::vector<std::string>{rule.get<std::string>()};
    if (std::none_of(types.begin(), types.end(), [&](const std::string& type) { return has_type(value, type); }))
      report(at, fmt::format("must be {}, is {}", fmt::join(types, " or "), shown(value)));
  }

  void check_enum(const Json& rule, const Json& value, const Pointer& at) {
    if (std::find(rule.begin(), rule.end(), value) != rule.end()) return;
    std::vector<std::string> choices;
    for (const Json& choice : rule) choices.push_back(choice.is_string() ? choice.get<std::string>() : choice.dump());
    report(at, fmt::format("must be one of {}; is {}", fmt::join(choices, ", "), shown(value)));
  }

  void check_one_of(const Json& rule, const Json& value, const Pointer& at) {
    std::size_t holds = 0;
    std::vector<SchemaProblem> nearest;
    for (const Json& branch : rule) {
      Validator attempt(root_, options_);
      attempt.check(branch, value, at);
      if (attempt.problems.empty()) {
        ++holds;
      } else if (nearest.empty() || nearer(attempt.problems, nearest, at.to_string())) {
        nearest = std::move(attempt.problems);
      }
    }
    if (holds == 0) problems.insert(problems.end(), nearest.begin(), nearest.end());
    if (holds > 1) report(at, fmt::format("must fit one of {} forms, fits {}", rule.size(), holds));
  }

  // A branch that only a deeper value breaks is nearer than one that the value itself breaks; then the one with fewer
  // problems.
  static bool nearer(const std::vector<SchemaProblem>& a, const std::vector<SchemaProblem>& b, const std::string& at) {
    const auto self = [&](const std::vector<SchemaProblem>& of) {
      return std::any_of(of.begin(), of.end(), [&](const SchemaProblem& problem) { return problem.pointer == at; });
    };
    if (self(a) != self(b)) return !self(a);
    return a.size() < b.size();
  }

  void check_properties(const Json& schema, const Json& value, const Pointer& at) {
    const auto part = [&](const char* keyword) { return schema.contains(keyword) ? &schema[keyword] : nullptr; };
    const Json* named = part("properties");
    const Json* patterned = part("patternProperties");
    const Json* additional = part("additionalProperties");
    for (const auto& [name, field] : value.items()) {
      bool known = false;
      if (named && named->contains(name)) {
        known = true;
        check((*named)[name], field, at / name);
      }
      if (patterned)
        for (const auto& [pattern, rule] : patterned->items())
          if (matches(name, pattern)) {
            known = true;
            check(rule, field, at / name);
          }
      if (known || !additional) continue;
      if (!additional->is_boolean()) {
        check(*additional, field, at / name);
      } else if (!additional->get<bool>() && !options_.allow_unknown_fields) {
        report(at / name, "is unknown here; " + fields(named, patterned));
      }
    }
  }

  static std::string fields(const Json* named, const Json* patterned) {
    std::vector<std::string> names;
    if (named)
      for (const auto& [name, rule] : named->items()) names.push_back(name);
    if (patterned)
      for (const auto& [pattern, rule] : patterned->items()) names.push_back(pattern);
    return names.empty() ? "no fields are" : fmt::format("known: {}", fmt::join(names, ", "));
  }

  const Json& root_;
  SchemaOptions options_;
};

constexpr const char* kinds[] = {"windows",   "reads",   "misses",   "gates",    "pairs",
                                 "placement", "control", "hot-rows", "exposure", "results"};

}  // namespace

std::vector<SchemaProblem> validate(const Json& schema, const Json& document, SchemaOptions options) {
  Validator validator(schema, options);
  validator.check(schema, document, Pointer());
  return std::move(validator.problems);
}

std::vector<std::string> schema_kinds() { return {std::begin(kinds), std::end(kinds)}; }

const Json& schema_for(std::string_view kind) {
  static const std::map<std::string, Json, std::less<>> schemas = [] {
    std::map<std::string, Json, std::less<>> all;
    for (const char* name : kinds) {
      const std::string file = fmt::format("schemas/{}.json", name);
      all.emplace(name, parse_json(embedded_file(file), file));
    }
    return all;
  }();
  const auto found = schemas.find(kind);
  if (found == schemas.end()) throw InputError(fmt::format("unknown kind '{}'; there are {}", kind, fmt::join(kinds, ", ")));
  return found->second;
}

}  // namespace slacktier
