// A `gates` file as a table.
#pragma once

#include "reports/results.hpp"
#include "reports/table.hpp"

namespace slacktier {

Table gates_table(const Envelope& envelope);

}  // namespace slacktier
