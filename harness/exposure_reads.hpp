// Read times T_k as the exposure model takes them: from values, or from a reads file's points or fits.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace slacktier {

struct ReadTimes {
  std::string name;                           // "uring x1 thread(s), 1 rank(s), 1 disk(s)"
  std::map<int, double> t_ms;                 // by layer; slowest rank, mean
  std::map<int, std::int64_t> pages;          // per rank
  std::vector<std::vector<double>> steps_ms;  // T_k of each batch, in the layers' order; empty without raw samples
};

// `reads` is "1:2.34,14:3.57" in ms, or a reads file: then each measured point, or each fit at `pages` ("1:700,14:700")
// where that is not empty. Raw samples are taken where the file names some and they are there. Throws InputError naming
// option, file and field: no fit, a layer that the fit does not know, samples that were changed.
std::vector<ReadTimes> read_times(const std::string& reads, const std::string& pages);

}  // namespace slacktier
