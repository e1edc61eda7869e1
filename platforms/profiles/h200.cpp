#include "platforms/profiles/profiles.hpp"

namespace slacktier {

// A GH200 has another link to its host.
const PlatformProfile h200_profile{"h200",
                                   "spin",
                                   "measured on an H200: a spin gate is passed 3.2 us after its release (p99 3.7), "
                                   "wait-value 6.2 (11.5), host nodes 11 (17) "
                                   "and one at a time",
                                   85,
                                   5,
                                   16,
                                   [](const DeviceFacts& facts) {
                                     return facts.backend != "cpu" && facts.name.find("H200") != std::string::npos &&
                                            facts.name.find("GH200") == std::string::npos;
                                   }};

}  // namespace slacktier
