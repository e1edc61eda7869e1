// Counts allocations, for tests of what must not allocate.
#pragma once

#include <cstddef>

// Calls of operator new by any thread of this program so far.
std::size_t allocation_count();
