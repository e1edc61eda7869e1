// Reading one object of a result file field by field, and writing what may be null.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "reports/error.hpp"
#include "reports/json.hpp"

namespace slacktier {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// One object of the file being read; what is missing or of another type throws with file and field.
class FieldReader {
 public:
  FieldReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) throw InputError(where_ + ": must be an object");
  }

  template <class T>
  T get(const char* key) const {
    const Json& field = at(key);
    try {
      return field.get<T>();
    } catch (const nlohmann::detail::exception& error) {
      throw InputError(fmt::format("{}/{}: has the wrong type ({})", where_, key, field.type_name()));
    }
  }
  template <class T>
  std::optional<T> maybe(const char* key) const {
    return at(key).is_null() ? std::optional<T>() : get<T>(key);
  }
  bool has(const char* key) const { return json_.contains(key); }
  bool null(const char* key) const { return at(key).is_null(); }
  FieldReader object(const char* key) const { return FieldReader(at(key), where_ + "/" + key); }
  std::vector<FieldReader> objects(const char* key) const {
    const Json& list = at(key);
    if (!list.is_array()) throw InputError(fmt::format("{}/{}: must be an array", where_, key));
    std::vector<FieldReader> readers;
    for (std::size_t i = 0; i < list.size(); ++i) readers.emplace_back(list[i], fmt::format("{}/{}/{}", where_, key, i));
    return readers;
  }
  std::string reason() const { return json_.contains("reason") ? get<std::string>("reason") : ""; }
  const Json& at(const char* key) const {
    if (!json_.contains(key)) throw InputError(fmt::format("{}/{}: is missing", where_, key));
    return json_[key];
  }

 private:
  const Json& json_;
  std::string where_;
};

}  // namespace slacktier
