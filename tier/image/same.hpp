// Whether two headers describe the same image.
#pragma once

#include <string>

#include "tier/image.hpp"

namespace slacktier {

// The first setting in which `found` differs from `wanted`, in words; empty when they agree in all but staging state and
// disk.
std::string first_difference(const ImageHeader& found, const ImageHeader& wanted);

}  // namespace slacktier
