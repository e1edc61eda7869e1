// Where the raw samples lie that a result file names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "reports/npy.hpp"

namespace slacktier {

// The samples of `result_file`: in the folder of its own beside it ("FILE-samples/" without the ending), or beside it. Empty
// when they are in neither. Throws InputError when they are not those that the file names.
std::optional<NpyArray> samples_of(const std::string& result_file, const SampleFile& samples);

}  // namespace slacktier
