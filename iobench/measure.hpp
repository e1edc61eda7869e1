// Loads measured over and over in shuffled rounds until the figures stand still.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "iobench/load.hpp"

namespace slacktier {

struct MeasureOptions {
  std::uint32_t batches = 700;     // of each point, warm-up rounds not counted: enough for a p99 (662)
  std::uint32_t rounds = 10;       // into which they are dealt, points shuffled in each
  double max_seconds = 60;         // ends earlier, with the condition that was not met
  bool whole_time = false;         // reads until max_seconds are over, however many batches and rounds that makes
  Nanos period = 0;                // paced: time between intended starts; 0: back to back
  double steady_tolerance = 0.05;  // spread of the last three rounds' means that counts as steady
  std::uint64_t seed = 1;
  std::function<bool()> stop;  // asked between batches; may be empty
  std::function<void(double share)> progress;
};

// Samples of one point in run order, times in microseconds.
struct PointSamples {
  std::vector<LayerPages> pages;
  std::vector<std::vector<double>> submit_us, t_us, response_us;  // [layer][batch]
  std::vector<double> wall_us;                                    // begin until the last page of all
  std::vector<double> start_s;                                    // of each batch, from the measurement's begin
  std::vector<std::size_t> round_end;                             // batches up to the end of each round
  // Of whole cycles: drawing the pages, reading them, looking at what came. CPU of the whole process. Of paced batches the
  // time is that of reading only.
  double cycle_us = 0, cycle_cpu_us = 0;
  std::uint64_t page_reads = 0, zero_pages = 0;  // of all ranks

  // Means of the rounds of one layer's T_k: what intervals are computed from, since batches of a round are not independent.
  std::vector<double> round_means(std::size_t layer) const;
};

struct Measurement {
  std::vector<PointSamples> points;
  bool steady = false;
  std::string unmet;  // what was not reached in time; empty when all was
  double seconds = 0;
  bool interrupted = false;
  std::exception_ptr failure;  // the DeviceError that ended it early: what had been read until then is kept
};

// A load of more than four times the first one's pages, such as a prefill's, is read once a round, whatever `batches` says:
// it takes as long as several of them, and its time says nothing about whether theirs stand still.
inline constexpr double long_load = 4;

// The first round warms up and is not kept. A page that fails ends the measurement (`failure`); all else that Load::run
// throws passes.
Measurement measure(Load& load, const std::vector<std::vector<LayerPages>>& points, const MeasureOptions& options);

}  // namespace slacktier
