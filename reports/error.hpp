// The one error of this folder: it knows no other folder, so it has its own.
#pragma once

#include <stdexcept>

namespace slacktier {

// A file or value that cannot be used; the message names the file, the line and the field, and what would do. Programs end
// with exit code 2, as for every std::invalid_argument. Failing system calls throw std::system_error instead.
struct InputError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

}  // namespace slacktier
