// Two measurements of the same load, laid beside each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/reads_file.hpp"
#include "reports/samples.hpp"

namespace slacktier {

enum class Change { same, faster, slower, unclear };
const char* to_string(Change change);

struct PointChange {
  std::string load;  // source, threads, ranks, …, pages
  int k = 0;
  double before_ms = 0, after_ms = 0;
  std::optional<Interval> mean_pct;  // of T_k; empty when a side has no raw samples
  Change change = Change::unclear;
  std::string reason;
};

// Every load that both files hold. Intervals come from the raw samples, cut into ten blocks in run order. same: the interval
// lies within ±`tolerance_pct`; faster and slower: it lies on one side of 0 and not within; else unclear. Throws InputError
// when the files have no load in common, or a sample file is not what its hash says.
std::vector<PointChange> compare_reads(const Envelope& before, const Envelope& after, double tolerance_pct);

}  // namespace slacktier
