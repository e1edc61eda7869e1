// What a `reads` file holds, as structures: written by the read benchmark, read by whatever places tables.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/distribution.hpp"
#include "reports/npy.hpp"
#include "reports/results.hpp"

namespace slacktier {

// T_k over time, of a long run.
struct ReadInterval {
  double start_s = 0;
  std::map<int, Distribution> t_us;
};

// One load, measured. All times in microseconds, of the slowest rank; layers by their number in the model.
struct ReadPoint {
  std::map<int, std::int64_t> pages_per_rank;
  std::map<int, Distribution> submit_us;    // t = 0 until the layer's first page is submitted
  std::map<int, Distribution> t_us;         // T_k: the first layer's first page submitted until the layer's last page is in
  std::map<int, Distribution> response_us;  // of paced batches: from the intended start until the layer's last page is in
  std::optional<double> cpu_us_per_page;
  // Of whole cycles: drawing the pages, the batch, looking at what came. Pages of all ranks.
  std::optional<double> cycle_us, cycle_cpu_us_per_page, pages_per_s;
  std::optional<Distribution> batch_us;  // begin of a batch until its last page of all is in
  std::optional<SampleFile> samples;     // [batches][layers] of T_k in us, in the layers' order
  std::vector<ReadInterval> intervals;
  std::string reason;
};

// T_k = a + sum over layers of b * pages, by least squares over the points' means; 95% intervals by Student's t.
struct ReadFit {
  int k = 0;
  double a_us = 0, a_lo_us = 0, a_hi_us = 0;
  std::map<int, double> b_us, b_lo_us, b_hi_us;
  std::optional<double> r2, rmse_us;
  std::map<int, std::pair<std::int64_t, std::int64_t>> range;  // fewest and most pages measured, by layer

  // T_k in microseconds; layers that the fit does not know count nothing.
  double at(const std::map<int, std::int64_t>& pages) const;
  // Whether some layer's pages lie outside what was measured.
  bool extrapolates(const std::map<int, std::int64_t>& pages) const;
};

enum class Fits { yes, no, unclear };
const char* to_string(Fits fits);  // "fits", "does-not-fit", "unclear"

struct ReadVerdict {
  int k = 0;
  Fits fits = Fits::unclear;
  double window_ms = 0;
  std::optional<double> headroom_mean_ms, headroom_p99_ms;  // window - (s + T_k)
  std::optional<std::int64_t> max_batch, max_tenants;       // that still fit on average
  std::string reason;
};

// What in effect read the pages.
struct ReadEngine {
  std::string effective;
  bool direct = true;
  bool fixed_buffers = false, fixed_files = false, sqpoll = false, iopoll = false;
  std::optional<double> poller_cpu_pct;
};

struct ReadResult {
  std::string source;
  std::int64_t ranks_on_disk = 1, disks = 1, threads = 1, tenants = 1;
  std::string order = "layer-first", pacing = "back-to-back", verify = "stamp";
  std::optional<double> zero_pages_share;
  std::optional<ReadEngine> engine;
  std::vector<ReadPoint> points;
  std::vector<ReadFit> fit;
  std::vector<ReadVerdict> verdicts;
  std::optional<bool> steady;
  std::string unmet;  // the condition that was not met in time
};

// All results of a reads envelope. Throws InputError when it is of another kind, or names the field that is wrong.
std::vector<ReadResult> read_results(const Envelope& envelope);
void set_read_results(Envelope& envelope, const std::vector<ReadResult>& results);

}  // namespace slacktier
