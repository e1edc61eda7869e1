// The paper's evaluation, experiment by experiment: what each row of its tables is on the virtual clock. Private to harness.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/paper/experiments.hpp"
#include "harness/paper_run.hpp"
#include "reports/json.hpp"

namespace slacktier::paper {

inline constexpr std::uint64_t million = 1'000'000;

// A value, or the ends of a range.
struct Published {
  std::optional<double> lo, hi;
  Published() = default;
  Published(double value) : lo(value), hi(value) {}
  Published(const Json& json) {
    if (json.is_array()) {
      lo = json.at(0).get<double>();
      hi = json.at(1).get<double>();
    } else if (json.is_number()) {
      lo = hi = json.get<double>();
    }
  }
};

class Evaluation {
 public:
  explicit Evaluation(const PaperRunOptions& options);
  PaperRun all();

 private:
  bool real() const { return !options_.traces.empty(); }

  void cell(const std::string& table, const std::string& row, const std::string& load, const std::string& quantity,
            Published published, std::optional<double> ours, bool calibrated = false);

  // The main batch of 128 sessions (main_batch.cpp).
  // The step that the paper's baseline takes, and the spread that makes its p99.
  Bench main_bench(const std::string& load) const;
  void main_batch(const std::string& load);
  // Returns the outcomes of placements that Table 9 repeats.
  std::map<std::string, Outcome> table2(Experiment& experiment, const std::string& load);
  // Whether the run is long enough for a controller to change anything, and all directories fit in memory at once.
  bool controller_fits();
  void table9(Experiment& experiment, const std::string& load, const std::map<std::string, Outcome>& known);
  void table4(Experiment& experiment, const std::string& load);
  void budgets(Experiment& experiment, const std::string& load);
  void sharing(Experiment& experiment, const std::string& load);
  void remote(Experiment& experiment, const std::string& load);
  void page_cache(Experiment& experiment, const std::string& load);
  // Rows that nobody has asked for in so many tokens are zeros, unread; the paper knew 75 million tokens, of agents only.
  void skipping(Experiment& experiment, const std::string& load);

  // Other batches, steps and models (other_batches.cpp).
  // Steps at other batches: 11 ms at 8 sessions and 43 ms at 256 are the ends of the paper's range, of its slower load;
  // linear between them and the step at 128, which is an assumption.
  double step_at(const std::string& load, std::uint32_t sessions) const;
  void batches(const std::string& load);
  void remote_at(Experiment& experiment, const std::string& load, std::uint32_t sessions);
  // Without decode graphs a step takes so long that every window holds.
  void no_graph(const std::string& load);
  void qwen(const std::string& load);

  // Table 3: two layers delayed at once, whatever the traffic. A delay of X from t = 0 is a device that answers then.
  void pairs();
  // Host memory of larger tables: rows where they lie in DRAM, directories of 4 bytes a row where they do not.
  void footprint();
  void finish();

  const PaperRunOptions& options_;
  const Json& paper_;
  PaperRun out_;
  std::vector<ConfigurationResult> configurations_;
  std::string controller_left_out_;  // why
};

}  // namespace slacktier::paper
