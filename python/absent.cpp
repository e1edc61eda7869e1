// Programs built where there is no Python to embed.
#include "platforms/error.hpp"
#include "python/embedded.hpp"

namespace slacktier {

Json call_python(const std::string& module, const std::string&, const Json&) {
  throw EnvironmentError("this program was built without Python, which " + module +
                         " needs: install python3-dev and pybind11-dev, then configure and build again");
}

std::string embedded_python_version() { return ""; }

}  // namespace slacktier
