// Facts of this host and of its storage as result files carry them.
#pragma once

#include <nlohmann/json.hpp>

#include "platforms/host.hpp"
#include "platforms/preflight.hpp"

namespace slacktier {

// Sizes in bytes; what the system does not tell is null.
nlohmann::ordered_json host_json(const HostFacts& facts);
// Of one path that is read: file system, direct I/O, extents, and the disk below it.
nlohmann::ordered_json storage_json(const StorageFacts& facts);

}  // namespace slacktier
