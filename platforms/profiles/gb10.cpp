#include "platforms/profiles/profiles.hpp"

namespace slacktier {

// Host and GPU share one memory; there is no PCIe link between them.
const PlatformProfile gb10_profile{
    "gb10", "spin", "as on an H200; not measured on a GB10", 85, 0, 0, [](const DeviceFacts& facts) {
      return facts.backend == "cuda" && (facts.architecture == "121" || facts.name.find("GB10") != std::string::npos);
    }};

}  // namespace slacktier
