// Python inside our programs: for libraries that exist in Python only (matplotlib, tokenizers, torch).
//
// The interpreter starts with the first call and stays until the process ends. In a process that is Python already, its own
// interpreter is used as it is. Of a virtual environment ($VIRTUAL_ENV) the packages are used; it must have the minor
// version that the programs were built with. Our own modules are the package `slacktier`: in share/slacktier/python beside
// an installed program, in python/ of the source tree otherwise.
#pragma once

#include <stdexcept>
#include <string>

#include "reports/json.hpp"

namespace slacktier {

// An exception of Python's that means none of our error types: a fault in a module or a library. Exit code 4.
struct PythonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `function` of `module` ("slacktier.plots"; imported when needed): an array as its arguments, an object as its
// keyword arguments. Returns what it returns, which must be what JSON can hold, without NaN. Any thread may call; one call
// runs at a time as far as Python's lock goes. What Python prints goes to stderr. The first SIGINT during a call on the
// thread of the first call ends it as Interrupted.
//
// Throws EnvironmentError for a missing or broken module, with the command that installs it; for an environment of another
// version; and in programs built without Python. slacktier.errors' exceptions become UsageError, CheckFailed,
// EnvironmentError and DeviceError; an OSError becomes std::system_error with its errno; anything else PythonError with its
// type, text and the traceback's last line.
Json call_python(const std::string& module, const std::string& function, const Json& arguments = Json::object());

// Version of the interpreter that the programs were built with, such as "3.11"; empty: built without.
std::string embedded_python_version();

}  // namespace slacktier
