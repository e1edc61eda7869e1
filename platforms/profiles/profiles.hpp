// One a file in this folder.
#pragma once

#include "platforms/profile.hpp"

namespace slacktier {

extern const PlatformProfile h200_profile, mi300x_profile, gb10_profile, generic_profile;

}  // namespace slacktier
