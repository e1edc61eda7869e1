// Measured loads in words, the same in every table and comparison.
#pragma once

#include <string>

#include "reports/reads_file.hpp"

namespace slacktier {

// "uring x1 thread(s), 4 rank(s), 1 disk(s), 2 tenant(s), layer-first".
std::string load_text(const ReadResult& result);
// "1:768,14:768": pages per rank by layer.
std::string pages_text(const ReadPoint& point);

}  // namespace slacktier
