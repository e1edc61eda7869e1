#include "platforms/profiles/profiles.hpp"

namespace slacktier {

const PlatformProfile generic_profile{"generic",
                                      "spin",
                                      "nothing is known of this kind of device: measure it with slacktier-probe gates",
                                      0,
                                      0,
                                      0,
                                      [](const DeviceFacts&) { return true; }};

}  // namespace slacktier
