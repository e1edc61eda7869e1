// Full examples of every kind of result file, and scratch folders.
#pragma once

#include <filesystem>
#include <random>
#include <string>

#include "reports/json.hpp"

inline std::string example_path(const std::string& kind) {
  return SLACKTIER_SOURCE_DIR "/tests/unit/reports/examples/" + kind + ".json";
}

inline slacktier::Json example(const std::string& kind) {
  return slacktier::parse_json(slacktier::read_text_file(example_path(kind)), kind);
}

// An empty folder that is removed with all that is in it.
struct ScratchFolder {
  ScratchFolder() {
    std::random_device random;
    do {
      path = std::filesystem::temp_directory_path() / ("slacktier-reports-" + std::to_string(random()));
    } while (!std::filesystem::create_directory(path));
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};
