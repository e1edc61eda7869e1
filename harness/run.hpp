// Runs a campaign: every placement replays the same steps, in shuffled interleaved blocks of one process.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/campaign.hpp"
#include "harness/images.hpp"
#include "harness/step_model.hpp"
#include "platforms/device.hpp"
#include "reports/results.hpp"

namespace slacktier {

struct RunOptions {
  ImageOptions images;
  StepModel model;
  std::string token_map;            // file of the table's token map, for traces of raw ids
  std::uint64_t verify_sample = 0;  // pages of each image that are compared with the rows' origin before the first step
  std::string samples_dir;          // raw step times as .npy files beside the result; empty: none are kept
  std::string control;      // control file that the one placement beside the baseline follows while it runs; empty: none
  bool controller = false;  // a split controller writes that file (harness/split_search.hpp)
  bool quiet = false;
  std::function<bool()> stop;  // asked between steps; true ends the run with what is there
};

struct RunOutcome {
  Envelope envelope;           // kind results; complete, or what had run
  Json disks = Json::array();  // facts of the storage below each image, for provenance
  bool interrupted = false;
  std::string failure;           // a device or I/O failure that ended the run
  std::uint64_t mismatches = 0;  // rows or pages that differed from their origin
};

// Throws UsageError, EnvironmentError and CheckFailed for what is wrong before the first step; later failures are in the
// outcome.
RunOutcome run_campaign(Device& device, const Campaign& campaign, const RunOptions& options);

// What run_campaign would do: bytes to stage, host memory, steps and seconds, as lines of text.
std::vector<std::string> plan_campaign(const Campaign& campaign, const RunOptions& options);

}  // namespace slacktier
