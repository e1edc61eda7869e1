// What went wrong, by what the user can do about it. Programs turn the type into an exit code (platforms/program.hpp).
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>

namespace slacktier {

// Wrong usage or input: the message names option or file, line and field, and the fix. Exit code 2.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A check failed: something is not what it should be, and was found so. The message names the first. Exit code 1.
struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The environment lacks something: the message names it, the limit and the command that fixes it. Exit code 3.
struct EnvironmentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A device or I/O failure; the message names the device and where on it. Exit code 4. System calls throw
// std::system_error instead, which carries errno and ends with the same exit code.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// SIGINT or SIGTERM arrived; partial results are saved before this reaches main. Exit code 130.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Throws std::system_error for the current errno; `what` names the call and its object.
[[noreturn]] inline void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace slacktier
