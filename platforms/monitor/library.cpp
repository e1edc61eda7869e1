#include "platforms/monitor/library.hpp"

#include <cstdlib>

namespace slacktier {

RuntimeLibrary::RuntimeLibrary(const char* variable, std::initializer_list<const char*> names) {
  const auto open = [&](const char* name) {
    handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr && reason_.empty()) reason_ = ::dlerror();
    return handle_ != nullptr;
  };
  if (const char* wanted = std::getenv(variable)) {
    open(wanted);
    return;
  }
  for (const char* name : names)
    if (open(name)) return;
}

}  // namespace slacktier
