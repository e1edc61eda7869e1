// Two layers delayed at once, as a table and as a file of kind "pairs".
#pragma once

#include <string>
#include <vector>

#include "probe/both.hpp"
#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

Table both_table(const BothResult& result, const std::vector<std::string>& head);
Envelope both_envelope(const BothResult& result);

}  // namespace slacktier
