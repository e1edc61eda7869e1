// Strict reading of a table's JSON: every field is asked for by name and range, and what was not asked for is an error.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tier/table.hpp"

namespace slacktier {

class SpecFields {
 public:
  // `where` names the file, or the built-in table, in messages. Throws UsageError with the line of a syntax error, for a key
  // that stands twice, and for anything but an object.
  SpecFields(const std::string& text, std::string where);
  SpecFields(nlohmann::json object, std::string where) : object_(std::move(object)), where_(std::move(where)) {}

  bool has(const std::string& key) const { return object_.contains(key); }
  const std::string& where() const { return where_; }
  std::string text(const std::string& key);
  std::uint64_t number(const std::string& key, std::uint64_t low, std::uint64_t high);
  double real(const std::string& key, double low, double high);
  bool flag(const std::string& key);
  // A text, or a list of texts.
  std::vector<std::string> texts(const std::string& key);
  // The fields of an object that is a field.
  SpecFields object(const std::string& key);
  std::vector<std::uint64_t> numbers(const std::string& key, std::uint64_t low, std::uint64_t high);
  // A single number stands for `count` equal ones.
  std::vector<std::uint64_t> numbers_or_one(const std::string& key, std::size_t count, std::uint64_t low,
                                            std::uint64_t high);
  // Model layers in rising order.
  std::vector<std::uint64_t> layers(const std::string& key, std::uint64_t low);
  // "record" and the values of one row: sets format, row_values and row_bytes.
  void record(TableSpec& spec, std::uint64_t values, const std::string& values_key);
  // Throws UsageError when a key was never asked for.
  void finish() const;

  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  const nlohmann::json& get(const std::string& key);
  std::uint64_t checked(const std::string& key, const nlohmann::json& value, std::uint64_t low, std::uint64_t high) const;

  nlohmann::json object_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace slacktier
