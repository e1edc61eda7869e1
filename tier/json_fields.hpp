// Strict reading of one JSON object: every field is asked for by name, type and range, and what was not asked for is an
// error.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace slacktier {

using JsonValue = nlohmann::ordered_json;

// The JSON in `text`. Throws UsageError naming `where`: with the line of a syntax error, for a key that stands twice in one
// object, and for nesting beyond 64 levels.
JsonValue parse_strict_json(std::string_view text, const std::string& where);

// All messages name the place and say what is needed there; all throw UsageError.
class JsonFields {
 public:
  // Keeps a reference to `object`, which stands at `where`: a path of fields ("layers.1"), or a file's name and ": ". Throws
  // for anything but an object.
  JsonFields(const JsonValue& object, std::string where);

  bool has(const std::string& key) const { return object_.contains(key); }
  // Each is empty when the field is absent.
  std::optional<std::uint64_t> number(const std::string& key, std::uint64_t low, std::uint64_t high);
  std::optional<double> real(const std::string& key, double low, double high);
  std::optional<std::string> text(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  std::optional<JsonFields> object(const std::string& key);
  // A text that is one of `choices`.
  std::optional<std::string> choice(const std::string& key, const std::vector<std::string>& choices);
  // Any value; null pointer when absent.
  const JsonValue* value(const std::string& key);
  // The elements of an array; an absent field is empty.
  std::vector<JsonValue> list(const std::string& key);

  // Sets `field` where the key is there. Numbers go up to what the field can hold.
  template <class T>
  void read(const std::string& key, T& field) {
    if constexpr (std::is_same_v<T, bool>) {
      if (const auto given = flag(key)) field = *given;
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (const auto given = text(key)) field = *given;
    } else {
      if (const auto given = number(key, 0, std::numeric_limits<T>::max())) field = static_cast<T>(*given);
    }
  }

  // Throws when a key was never asked for, naming those that are known.
  void finish() const;
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;
  std::string place(const std::string& key) const { return where_ + (where_.ends_with(": ") ? "" : ".") + key; }
  const JsonValue& json() const { return object_; }

 private:
  const JsonValue& object_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace slacktier
