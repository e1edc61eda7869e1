#include "tier/table/model_config.hpp"

#include <fmt/format.h>

#include "platforms/error.hpp"
#include "tier/table/strict_json.hpp"

namespace slacktier {

ModelConfig::ModelConfig(const std::string& path) : path_(path) {
  outer_ = parse_strict_object(read_small_file(path), path);
  if (const auto at = outer_.find("text_config"); at != outer_.end() && !at->is_null()) {
    if (!at->is_object()) fail("field \"text_config\" is not an object of fields");
    text_ = *at;
  }
}

const nlohmann::json* ModelConfig::find(const std::string& key) const {
  for (const nlohmann::json* object : {&text_, &outer_}) {
    if (!object->is_object()) continue;
    const auto at = object->find(key);
    if (at != object->end() && !at->is_null() && !(at->is_array() && at->empty())) return &*at;
  }
  return nullptr;
}

const nlohmann::json& ModelConfig::need(std::initializer_list<const char*> keys) const {
  for (const char* key : keys) {
    if (const nlohmann::json* value = find(key)) return *value;
  }
  fail(fmt::format("field \"{}\" is missing (looked for {})", fmt::join(keys, "\" or \""), places()));
}

std::string ModelConfig::places() const {
  return nested() ? "in its text_config and outside of it" : "at its top; there is no text_config";
}

std::string ModelConfig::model_type() const {
  // The outer name is the model's; the inner one only says which part it is.
  if (const auto at = outer_.find("model_type"); at != outer_.end() && at->is_string()) return at->get<std::string>();
  if (const nlohmann::json* list = find("architectures"); list && list->is_array() && list->front().is_string())
    return list->front().get<std::string>();
  return "model";
}

void ModelConfig::fail(const std::string& problem) const { throw UsageError(path_ + ": " + problem); }

}  // namespace slacktier
