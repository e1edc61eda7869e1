// A model's own config.json (Hugging Face's), read for what describes its lookup tables.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

namespace slacktier {

// Models that see or hear keep the language model's fields in an object "text_config"; those count before the outer ones.
// Fields that are null count as absent.
class ModelConfig {
 public:
  // Throws UsageError naming file and line.
  explicit ModelConfig(const std::string& path);

  // The field, or null when it is nowhere; an empty list counts as absent.
  const nlohmann::json* find(const std::string& key) const;
  // The first of several names that one field has had. Throws UsageError naming the file and all that was looked for.
  const nlohmann::json& need(std::initializer_list<const char*> keys) const;
  // "in it and in its text_config", for messages.
  std::string places() const;
  // model_type, or the first of its architectures, or "model".
  std::string model_type() const;
  bool nested() const { return !text_.is_null(); }
  [[noreturn]] void fail(const std::string& problem) const;

 private:
  std::string path_;
  nlohmann::json outer_, text_;
};

}  // namespace slacktier
