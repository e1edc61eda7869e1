// The experiments behind the paper's tables: one traffic, batch and model at a time. Private to harness.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/paper_run.hpp"
#include "harness/sim.hpp"
#include "reports/results_file.hpp"

namespace slacktier::paper {

// Host memory of a serving process beside the tables: 223 GiB at the host-DRAM baseline less 189 GiB of V4.1's rows.
inline constexpr double runtime_gib = 34;

// A traffic ("agent" or "chat") at one batch, and the step that its baseline takes.
struct Bench {
  std::string load;
  std::uint32_t sessions = 128;
  double step_ms = 0, step_jitter = 0;
  double window1_ms = 0.6, window_late_ms = 9.35;  // at a step of 29.4 ms; all scale with the step
  std::string table = "engram_v41";
  std::string label;  // before configurations' names where it is not the paper's main batch: "B=256: "
};

// What came out for one placement.
struct Outcome {
  double step_ms = 0, slowdown_ms = 0, slowdown_pct = 0, host_gib = 0;
  std::optional<double> p99_ms;   // when the steps support one
  std::map<int, double> hit;      // by model layer, mean of the ranks
  std::map<int, double> read_ms;  // T_k of the slowest rank, mean
};

class Experiment {
 public:
  // Records the traffic. Appends each configuration to `results`, and the sessions to `settings`.
  Experiment(const Bench& bench, const PaperRunOptions& options, std::vector<ConfigurationResult>& results, Json& settings);
  ~Experiment();
  // The baseline runs first, and once.
  const Outcome& baseline() const { return baseline_; }
  Outcome run(const Placement& placement, std::uint64_t page_cache_pages = 0);
  // While the split controller moves the placement's cache rows, beginning with its split.
  Outcome run_controlled(const Placement& placement);
  const Bench& bench() const { return bench_; }

 private:
  Outcome add(const Placement& placement, const SimWorkload::Run& run, bool first);

  Bench bench_;
  TableSpec spec_;
  Campaign campaign_;
  SimOptions options_;
  std::unique_ptr<SimWorkload> workload_;
  SimWorkload::Run baseline_run_;
  Outcome baseline_;
  std::vector<ConfigurationResult>& results_;
};

// The model of V4.1 (or Qwen: one early lookup layer) with the bench's windows and step.
StepModel model_of(const Bench& bench);

// Both layers in one place, with cache rows of each.
Placement both(const std::string& name, std::uint32_t disks, int threads, std::uint64_t rows1, std::uint64_t rows14,
               const std::string& source = "uring");

// A seen-set file of `tokens` tokens of generated sessions of the paper's kind, other ones than the experiments decode;
// removed with the object.
class GeneratedSeenSet {
 public:
  GeneratedSeenSet(const std::string& load, std::uint64_t seed, std::uint64_t tokens, const std::function<bool()>& stop);
  ~GeneratedSeenSet();
  GeneratedSeenSet(const GeneratedSeenSet&) = delete;
  GeneratedSeenSet& operator=(const GeneratedSeenSet&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace slacktier::paper
