#include "reports/schema.hpp"

#include <map>
#include <set>

#include "reports/error.hpp"
#include "tests/catch.hpp"
#include "tests/unit/reports/mutants.hpp"

using namespace slacktier;

namespace {

std::string first_problem(const std::string& schema, const std::string& document, SchemaOptions options = {}) {
  const auto problems = validate(parse_json(schema, "schema"), parse_json(document, "document"), options);
  return problems.empty() ? "" : problems.front().pointer + " " + problems.front().message;
}

// Names of all properties that a schema knows, except those below open objects.
void properties_of(const Json& schema, std::set<std::string>& names) {
  if (schema.is_object()) {
    if (schema.contains("properties") && schema["properties"].is_object())
      for (const auto& [name, rule] : schema["properties"].items()) names.insert(name);
    for (const auto& [keyword, rule] : schema.items()) properties_of(rule, names);
  } else if (schema.is_array()) {
    for (const Json& part : schema) properties_of(part, names);
  }
}

void keys_of(const Json& value, std::set<std::string>& names) {
  if (value.is_object())
    for (const auto& [key, field] : value.items()) {
      names.insert(key);
      keys_of(field, names);
    }
  if (value.is_array())
    for (const Json& item : value) keys_of(item, names);
}

}  // namespace

TEST_CASE("every kind's full example is valid", "[schema]") {
  for (const std::string& kind : schema_kinds()) {
    CAPTURE(kind);
    const auto problems = validate(schema_for(kind), example(kind));
    for (const auto& problem : problems) UNSCOPED_INFO(problem.pointer + " " + problem.message);
    CHECK(problems.empty());
  }
}

TEST_CASE("the examples show every field", "[schema]") {
  std::set<std::string> known, shown;
  for (const std::string& kind : schema_kinds()) {
    properties_of(schema_for(kind), known);
    keys_of(example(kind), shown);
  }
  for (const std::string& name : known) {
    CAPTURE(name);
    CHECK(shown.count(name) == 1);
  }
}

TEST_CASE("changed examples are refused where they were changed", "[schema]") {
  for (const std::string& kind : schema_kinds()) {
    std::size_t refused = 0, all = 0;
    visit_mutants(kind, [&](const std::string& pointer, const std::string& change, const Json& document) {
      ++all;
      const auto problems = validate(schema_for(kind), document);
      if (problems.empty()) return;
      ++refused;
      if (problems.front().pointer.rfind(pointer, 0) != 0 || problems.front().message.empty())
        FAIL_CHECK(kind + " " + pointer + " " + change + " gives: " + problems.front().pointer + " " +
                   problems.front().message);
    });
    CAPTURE(kind, refused, all);
    CHECK(refused > all / 2);
  }
}

TEST_CASE("definitions of one name are the same in every schema", "[schema]") {
  std::map<std::string, Json> definitions;
  for (const std::string& kind : schema_kinds())
    for (const auto& [name, definition] : schema_for(kind)["$defs"].items()) {
      CAPTURE(kind, name);
      CHECK(definitions.emplace(name, definition).first->second == definition);
    }
  CHECK(definitions.count("provenance") == 1);
}

TEST_CASE("problems are told in words with their place", "[schema]") {
  CHECK(first_problem(R"({"type": "integer"})", "1.5") == " must be integer, is 1.5");
  CHECK(first_problem(R"({"type": "integer"})", "2.0") == "");
  CHECK(first_problem(R"({"type": ["number", "null"]})", "\"fast\"") == " must be number or null, is \"fast\"");
  CHECK(first_problem(R"({"type": "number"})", "[1]") == " must be number, is an array");
  CHECK(first_problem(R"({"items": {"minimum": 1}})", "[1, 0]") == "/1 must be at least 1, is 0");
  CHECK(first_problem(R"({"maximum": 1})", "1.01") == " must be at most 1, is 1.01");
  CHECK(first_problem(R"({"minItems": 1})", "[]") == " must have at least 1 items, has 0");
  CHECK(first_problem(R"({"enum": ["a", "b"]})", "\"c\"") == " must be one of a, b; is \"c\"");
  CHECK(first_problem(R"({"pattern": "^[a-z]+$"})", "\"A\"") == " must match ^[a-z]+$, is \"A\"");
  CHECK(first_problem(R"({"required": ["a/b"]})", "{}") == "/a~1b is missing");
  CHECK(first_problem(R"({"properties": {"a": {}}, "additionalProperties": false})", R"({"b": 1})") ==
        "/b is unknown here; known: a");
  CHECK(first_problem(R"({"additionalProperties": {"type": "null"}})", R"({"b": 1})") == "/b must be null, is 1");
  CHECK(first_problem(R"({"patternProperties": {"^[0-9]+$": {"type": "null"}}, "additionalProperties": false})",
                      R"({"12": null, "x": null})") == "/x is unknown here; known: ^[0-9]+$");
  CHECK(first_problem(R"({"additionalProperties": false})", R"({"b": 1})", {.allow_unknown_fields = true}) == "");
}

TEST_CASE("of several forms the nearest tells what is wrong", "[schema]") {
  const std::string schema = R"({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/point"}],
    "$defs": {"point": {"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}}}})";
  CHECK(first_problem(schema, "null") == "");
  CHECK(first_problem(schema, R"({"x": 1})") == "");
  CHECK(first_problem(schema, R"({"x": "1"})") == "/x must be number, is \"1\"");
  CHECK(first_problem(schema, "{}") == "/x is missing");
  CHECK(first_problem(R"({"oneOf": [{"minimum": 1}, {"minimum": 2}]})", "3") == " must fit one of 2 forms, fits 2");
}

TEST_CASE("a schema that cannot be checked is refused, not taken for satisfied", "[schema]") {
  CHECK_THROWS_AS(first_problem(R"({"maxItems": 3})", "[]"), std::logic_error);
  CHECK_THROWS_AS(first_problem(R"({"$ref": "#/$defs/none"})", "[]"), std::logic_error);
  CHECK_THROWS_AS(first_problem(R"({"$ref": "other.json"})", "[]"), std::logic_error);
  CHECK_THROWS_WITH(schema_for("reeds"), contains_text("unknown kind 'reeds'; there are windows, reads"));
}

TEST_CASE("a long string does not exhaust the stack of a pattern", "[schema]") {
  const Json text = std::string(1 << 20, 'a');
  CHECK(validate(parse_json(R"({"pattern": "^(a|b)*$"})", "schema"), text).size() == 1);
}
