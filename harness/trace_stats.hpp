// What a file of token sessions holds, counted.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/table.hpp"

namespace slacktier {

// Sessions, turns and tokens by role, and how long sessions and assistant turns are. Streams the files; throws what
// open_sessions does. `watch` is called with each session; may throw.
Table trace_stats(const std::vector<std::string>& traces, const std::function<void()>& watch = {});

}  // namespace slacktier
