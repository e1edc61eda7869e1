// Reading from a file mapping whose pages may not be there to read.
#pragma once

#include <cstddef>

namespace slacktier {

// Copies `bytes` from a mapping of a file. False, with `to` in an undefined state, when a page of it cannot be read: the
// file was cut, or its disk failed. Such a fault elsewhere in the process (SIGBUS) does what it did before the first call.
bool copy_from_mapping(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace slacktier
