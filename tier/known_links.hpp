// Links that the wrapper `delayed` knows by name: the two slower networks that the paper emulates.
#pragma once

#include <optional>
#include <string>

#include "tier/source.hpp"

namespace slacktier {

// "100g-15us": 15 microseconds at 100 Gb/s; "25g-120us": 120 at 25. Others are none.
std::optional<LinkDelay> known_link(const std::string& name);

}  // namespace slacktier
