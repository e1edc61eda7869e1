// What a `results` file holds, as structures. Writer, table and report all use these and nothing else knows the fields'
// names. Times of a step count from its start (t = 0). An empty optional is written as null.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/distribution.hpp"
#include "reports/npy.hpp"
#include "reports/results.hpp"
#include "reports/samples.hpp"

namespace slacktier {

// One layer on one rank over the measured decode steps of a configuration.
struct RankResult {
  int rank = 0;
  std::int64_t lookups = 0;             // of all ranks: B * q * rows per token * steps
  std::int64_t owned = 0;               // of them by this rank
  std::optional<std::int64_t> skipped;  // of those, never seen and delivered as zeros; empty: the placement skips nothing
  std::optional<double> hit_rate;       // owned lookups found in the cache, 0..1
  std::optional<double> reuse_rate;     // owned lookups that miss but whose row this step has requested already, 0..1
  Distribution miss_pages_per_step;
  std::optional<double> p_any_miss;            // share of steps with at least one page to read
  Distribution resolve_us;                     // this layer's directory pass
  Distribution t_submit_us;                    // t = 0 until the layer's first page is submitted; of the first layer it is s
  Distribution t_done_us;                      // T_k: arrival of the last missing page - s; steps that read something
  Distribution t_open_us;                      // t = 0 until the gate opens
  Distribution stall_us;                       // the stream's wait at the gate, from timestamps on both sides
  std::map<std::string, std::int64_t> status;  // steps by status: ok, late, failed, …
};
struct LayerResult {
  int k = 0;
  std::optional<double> window_ms;  // W_k that the step model has
  std::vector<RankResult> ranks;
};

struct SlowdownResult {
  Interval mean_pct, mean_ms;               // against the baseline, 95%
  std::optional<Interval> p99_pct, p99_ms;  // when both sides have the samples for a p99
  std::optional<double> mann_whitney_p;     // of block means
};
SlowdownResult slowdown(const Comparison& comparison, const MannWhitney& test);

struct HostMemoryResult {
  std::optional<std::int64_t>
      computed_full_geometry_bytes;            // what this placement needs per node at the table's full size, all ranks
  std::optional<std::int64_t> computed_bytes;  // the same of what this run really holds (scaled images, one rank)
  std::optional<std::int64_t> measured_bytes;  // rss_bytes of the process, plus registered memory that RSS leaves out
  std::optional<std::int64_t> rss_bytes, registered_bytes;
};

// What the paper has for the same configuration.
struct PaperValue {
  std::string label;  // "Table 2: both on 4 disks"
  std::optional<double> mean_pct, mean_ms, p99_ms, host_gib;
};

// Prefill by reads, in chunks between the steps; timed apart from them.
struct PrefillLayerResult {
  int k = 0, rank = 0;
  std::optional<double> hit_rate,
      reuse_rate;  // of the rank's lookups: in the cache; missing, but wanted before in the chunk
  Distribution pages, waves, read_ms, total_ms;  // per chunk; read_ms: first page submitted until the last one in
  std::map<std::string, std::int64_t> status;    // chunks by status
};
struct PrefillResult {
  std::int64_t tokens = 0;
  Distribution chunk_ms;  // all layers of a chunk, one after another, without the model's compute
  std::vector<PrefillLayerResult> layers;
};

struct ConfigurationResult {
  std::string name, workload;
  std::optional<std::string> baseline;  // the configuration it is compared with; empty: it is the baseline
  Json placement = Json::object();      // as a placement file's results
  std::int64_t steps = 0;
  Distribution step_ms;
  std::optional<SampleFile> samples;  // steps in run order; blocks one after another
  std::vector<double> block_mean_ms;
  std::vector<std::int64_t> block_steps;  // steps of each block
  std::optional<SlowdownResult> slowdown;
  std::optional<AaCheck> aa_check;  // of the baseline
  std::optional<Interval> run_order_slope_ms_per_block;
  HostMemoryResult host_memory;
  std::vector<LayerResult> layers;
  std::optional<PrefillResult> prefill;  // empty: prefill went through the directories without reads
  std::int64_t mismatches = 0, checked_rows = 0;
  std::optional<PaperValue> paper;
};

Json to_json(const ConfigurationResult& configuration);
// Takes what to_json writes. `where` names file and place in messages. Throws InputError naming the field.
ConfigurationResult configuration_from_json(const Json& json, const std::string& where);

// All configurations of a results envelope. Throws InputError when it is of another kind.
std::vector<ConfigurationResult> configurations(const Envelope& envelope);
void set_configurations(Envelope& envelope, const std::vector<ConfigurationResult>& configurations);

}  // namespace slacktier
