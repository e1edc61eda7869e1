// Single changes of an example: each field removed, given another type or value, or joined by an unknown one.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/reports/examples.hpp"

// Gets the pointer that was changed, how, and the changed document.
using MutantVisitor =
    std::function<void(const std::string& pointer, const std::string& change, const slacktier::Json& document)>;

// Changes `part`, the value of `whole` at `at`, and all below it in place, one after another, and undoes each.
inline void visit_mutants(const slacktier::Json& whole, slacktier::Json& part, const slacktier::Json::json_pointer& at,
                          const MutantVisitor& visit) {
  using slacktier::Json;
  const auto with = [&](const std::string& change, Json value) {
    std::swap(part, value);
    visit(at.to_string(), change, whole);
    std::swap(part, value);
  };
  for (const Json& value : {Json(nullptr), Json(true), Json(-1), Json(0.5), Json("?"), Json::array(), Json::object()})
    if (value != part) with("becomes " + value.dump(), value);
  if (part.is_object()) {
    Json more = part;
    more["unheard_of"] = 1;
    with("gets an unknown field", std::move(more));
    std::vector<std::string> keys;
    for (const auto& [key, field] : part.items()) keys.push_back(key);
    for (const std::string& key : keys) {
      Json less = part;
      less.erase(key);
      with("loses " + key, std::move(less));
      visit_mutants(whole, part[key], at / key, visit);
    }
  } else if (part.is_array()) {
    for (std::size_t i = 0; i < part.size(); ++i) visit_mutants(whole, part[i], at / i, visit);
  }
}

inline void visit_mutants(const std::string& kind, const MutantVisitor& visit) {
  slacktier::Json whole = example(kind);
  visit_mutants(whole, whole, slacktier::Json::json_pointer(), visit);
}
