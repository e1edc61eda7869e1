// The Python that tests start: the one that has their packages.
#pragma once

#include <cstdlib>
#include <string>

namespace slacktier {

// ctest names it; else what the PATH has.
inline std::string test_python() {
  const char* named = std::getenv("SLACKTIER_PYTHON");
  return named != nullptr && *named != 0 ? named : "python3";
}

}  // namespace slacktier
