// Facts of this host as result files carry them.
#pragma once

#include <nlohmann/json.hpp>

#include "platforms/host.hpp"

namespace slacktier {

// Sizes in bytes; what the system does not tell is null.
nlohmann::ordered_json host_json(const HostFacts& facts);

}  // namespace slacktier
