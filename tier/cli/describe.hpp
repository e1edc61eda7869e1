// An image's header, for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tier/image.hpp"

namespace slacktier::cli {

std::string describe_text(const ImageHeader& header);
nlohmann::json describe_json(const ImageHeader& header);

}  // namespace slacktier::cli
