// A shared library that is opened at run time.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>

namespace slacktier {

class RuntimeLibrary {
 public:
  // $`variable` alone where it is set, else the first of `names` that is there. `reason()` tells why none was opened.
  RuntimeLibrary(const char* variable, std::initializer_list<const char*> names);
  ~RuntimeLibrary() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }
  RuntimeLibrary(const RuntimeLibrary&) = delete;
  RuntimeLibrary& operator=(const RuntimeLibrary&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& reason() const { return reason_; }
  // Null when the library has no such function.
  template <class Function>
  Function* function(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
  std::string reason_;
};

}  // namespace slacktier
