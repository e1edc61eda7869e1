// The same load for fio, so that its figures can be laid beside ours.
#pragma once

#include <string>
#include <vector>

#include "iobench/load.hpp"

namespace slacktier {

// A job file: random reads of one page, P of them submitted together and all awaited before the next P (the batch), on the
// same bytes of the same disks. fio knows no layers: P is the sum of theirs.
std::string fio_job(const LoadOptions& load, const std::vector<LayerPages>& pages);

}  // namespace slacktier
