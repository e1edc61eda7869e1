// Where tests find real sessions, which the repository does not hold.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

// Path of a file of the session directory ($SLACKTIER_SESSIONS, else ../shared/data beside the repository), or empty when
// it is not there; tests that need it skip then.
inline std::string real_session_file(const std::string& name) {
  const char* directory = std::getenv("SLACKTIER_SESSIONS");
  const std::filesystem::path path =
      std::filesystem::path(directory ? directory : SLACKTIER_SOURCE_DIR "/../shared/data") / name;
  return std::filesystem::exists(path) ? path.lexically_normal().string() : std::string();
}
