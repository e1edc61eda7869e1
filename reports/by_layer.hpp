// Values by model layer as options take them: "1:0.27,14:9.35".
#pragma once

#include <map>
#include <string>

namespace slacktier {

// Layers ascend, none twice; values are finite and at least 0. Throws InputError naming `option` and the part that is wrong;
// `what` says what a value is: "time in ms".
std::map<int, double> parse_by_layer(const std::string& option, const std::string& text, const std::string& what);

}  // namespace slacktier
