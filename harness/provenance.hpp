// Facts of this host as result files carry them.
#pragma once

#include "platforms/host.hpp"
#include "reports/json.hpp"

namespace slacktier {

// Sizes in bytes; what the system does not tell is null.
Json host_json(const HostFacts& facts);

}  // namespace slacktier
