// Text files that are built into the library, by their path below reports/.
#pragma once

#include <string_view>

namespace slacktier {

// Empty when there is none of that name.
std::string_view embedded_file(std::string_view name);

}  // namespace slacktier
