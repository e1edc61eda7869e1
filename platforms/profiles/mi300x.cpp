#include "platforms/profiles/profiles.hpp"

namespace slacktier {

// hot_c is of the hottest point (junction), which is specified to 100.
const PlatformProfile mi300x_profile{
    "mi300x",
    "spin",
    "HIP captures host nodes and spin gates only; not measured on an MI300X",
    95,
    5,
    16,
    [](const DeviceFacts& facts) { return facts.backend == "hip" && facts.architecture.starts_with("gfx942"); }};

}  // namespace slacktier
