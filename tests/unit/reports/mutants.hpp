// Single changes of an example: each field removed, given another type or value, or joined by an unknown one.
#pragma once

#include <string>
#include <vector>

#include "tests/unit/reports/examples.hpp"

struct Mutant {
  std::string change, pointer;
  slacktier::Json document;
};

inline void add_mutants(const slacktier::Json& whole, const slacktier::Json& part, const slacktier::Json::json_pointer& at,
                        std::vector<Mutant>& mutants) {
  using slacktier::Json;
  const auto with = [&](const std::string& change, const Json& value) {
    Json document = whole;
    document[at] = value;
    mutants.push_back({change, at.to_string(), std::move(document)});
  };
  for (const Json& value : {Json(nullptr), Json(true), Json(-1), Json(0.5), Json("?"), Json::array(), Json::object()})
    if (value != part) with("becomes " + value.dump(), value);
  if (part.is_object()) {
    Json more = part;
    more["unheard_of"] = 1;
    with("gets an unknown field", more);
    for (const auto& [key, field] : part.items()) {
      Json less = part;
      less.erase(key);
      with("loses " + key, less);
      add_mutants(whole, field, at / key, mutants);
    }
  } else if (part.is_array()) {
    for (std::size_t i = 0; i < part.size(); ++i) add_mutants(whole, part[i], at / i, mutants);
  }
}

inline std::vector<Mutant> mutants_of(const std::string& kind) {
  std::vector<Mutant> mutants;
  const slacktier::Json whole = example(kind);
  add_mutants(whole, whole, slacktier::Json::json_pointer(), mutants);
  return mutants;
}
